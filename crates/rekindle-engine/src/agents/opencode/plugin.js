// rekindle guard for opencode: tells `rekindle hook opencode` what happens in a session, and puts what the session has to know
// after a compaction or a crash before the model again. Does nothing in an agent that rekindle itself runs.
import { spawn } from "node:child_process"

const REKINDLE = "__REKINDLE__"
const WAIT_MS = 5000
const TEXT_CHARS = 16384
const TOLD = ["bash", "write", "edit", "multiedit", "patch", "apply_patch", "task", "question"]
const LIVE = (globalThis[Symbol.for("rekindle.guard")] ??= new Set())

// Texts are bounded; what is left out is not needed to know what happened.
const cut = (value) => (typeof value === "string" ? value.slice(0, TEXT_CHARS) : value)
// Nobody waits longer than this, whatever becomes of it.
const soon = (work) => Promise.race([work, new Promise((done) => setTimeout(done, WAIT_MS).unref?.())]).catch(() => {})
const end = (value) => (typeof value === "string" ? value.slice(-TEXT_CHARS) : undefined)

// One call of rekindle; whatever goes wrong, there is no answer and the session continues.
const call = (event) =>
  new Promise((done) => {
    let out = ""
    const child = spawn(REKINDLE, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => (child.kill("SIGKILL"), done("")), WAIT_MS)
    child.on("error", () => (clearTimeout(late), done("")))
    child.on("close", () => (clearTimeout(late), done(out.trim())))
    child.stdout.on("data", (piece) => (out += piece))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  }).catch(() => "")

// What is left out of a call's arguments: files' contents, which may be large and are on the disk.
const input = ({ content, oldString, newString, patchText, ...args } = {}) => {
  const patch = patchText && String(patchText).split("\n").filter((line) => line.startsWith("*** ")).join("\n")
  return Object.fromEntries(Object.entries({ ...args, patch }).map(([name, value]) => [name, cut(value)]))
}

export const RekindleGuard = async ({ client, directory }) => {
  if (process.env.REKINDLE_TOKEN || LIVE.has(directory)) return {}
  LIVE.add(directory)
  const parents = new Map() // Of every session seen: the one that started it, or nothing.
  const begun = new Set()
  const told = new Map() // What a session has to know; letter for letter the same until it is told again.
  const compacting = new Map() // The summary of a compaction that is not done, once there is one.
  const words = new Map() // The last that was said in a session.
  const running = new Set()
  let queue = Promise.resolve()

  const root = (id) => (parents.get(id) ? root(parents.get(id)) : id)
  const known = async (id) => {
    if (parents.has(id)) return
    const found = await soon(client.session.get({ path: { id } }))
    if (!parents.has(id)) parents.set(id, found?.data?.parentID)
  }
  // In order, one at a time; nobody has to wait for it.
  const tell = (event, id, more) =>
    (queue = queue.then(async () => {
      await known(id)
      const session = root(id)
      const helper = session === id ? undefined : id
      if (helper && event !== "tool" && event !== "text") return
      const text = await call({ event, session, helper, dir: directory, ...more })
      if (text && !helper) told.set(id, text)
    }).catch(() => {}))
  const begin = (id, how) => {
    if (begun.has(id)) return
    begun.add(id)
    tell("session.begins", id, { how })
  }
  const compacted = (id) => {
    if (!compacting.has(id)) return
    tell("session.compacted", id, { summary: compacting.get(id) })
    compacting.delete(id)
  }

  const heard = ({ type, properties: it = {} }) => {
    const id = it.sessionID ?? it.info?.id
    if (!id) return
    if (type === "session.created") {
      parents.set(id, it.info?.parentID)
      begin(id, "new")
    } else if (type === "session.compacted") compacted(id)
    else if (type === "session.idle") tell(type, id, { words: words.get(id) })
    else if (type === "session.error") {
      const { name, data: { message, statusCode, isRetryable, responseBody } = {} } = it.error ?? {}
      const data = { message: cut(message), statusCode, isRetryable, responseBody: cut(responseBody) }
      tell(type, id, { error: { name, data } })
    }
    else if (type === "session.deleted") tell(type, id, {})
    else if (type === "todo.updated") tell(type, id, { todos: it.todos })
    else if (type === "message.part.updated" && it.part?.type === "tool") {
      const { tool, callID, state } = it.part
      if (!TOLD.includes(tool) && !(tool === "read" && /\.(md|markdown)$/i.test(state.input?.filePath))) return
      const over = state.status === "completed" || state.status === "error"
      const long = state.status === "running" && ["task", "question", "bash"].includes(tool) && !running.has(callID)
      if (!over && !long) return
      if (long) running.add(callID)
      const { exit, sessionId } = state.metadata ?? {}
      const more = { output: end(state.output), error: cut(state.error), exit, child: sessionId }
      tell("tool", id, { tool, call: callID, status: state.status, input: input(state.input), ...more })
    }
  }

  const hooks = {
    event: ({ event }) => heard(event),
    "chat.message": ({ sessionID: id }, { parts }) => {
      begin(id, "resumed")
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      if (typed.length) tell("chat.message", id, { text: cut(typed.join("\n")) })
    },
    "experimental.text.complete": ({ sessionID: id }, { text }) => {
      if (compacting.has(id)) return void compacting.set(id, cut(text))
      words.set(id, end(text))
      tell("text", id, { text: cut(text) })
    },
    "experimental.session.compacting": ({ sessionID: id }) => {
      compacting.set(id, undefined)
      tell("session.compacting", id, {})
    },
    "experimental.chat.system.transform": async ({ sessionID: id }, { system }) => {
      if (!id || /^You are a title generator/.test(system[0])) return
      // The first request after a summary was written is the first of the new context.
      if (compacting.get(id) !== undefined) compacted(id)
      await soon(queue)
      if (told.has(id)) system.push(told.get(id))
    },
    "shell.env": async ({ sessionID: id }, { env }) => {
      if (!id) return
      await known(id)
      env.REKINDLE_GUARD_SESSION = root(id)
    },
    dispose: async () => {
      LIVE.delete(directory)
      for (const id of begun) if (!parents.get(id)) tell("exit", id, {})
      await soon(queue)
    },
  }
  // Whatever is wrong here, the session continues without it.
  const safe = (hook) => async (...args) => {
    try {
      await hook(...args)
    } catch {}
  }
  return Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, safe(hook)]))
}
