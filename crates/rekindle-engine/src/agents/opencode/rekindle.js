// Written by rekindle for one attempt of one agent.
//
// Tells on standard error what the program's output does not show: its session before the first answer, calls that have begun,
// waits before another try, the model's window, compactions, and which message was the last. After a compaction it adds what the
// agent has to know again to every request: the same text until the next compaction, for what came later is in the conversation.
import { execFile } from "node:child_process"
import { writeSync } from "node:fs"

const CONTEXT = ["__CONTEXT__"]
const CONTEXT_MS = 15000
const INPUT_CHARS = 16384
const PART = "prt_rekindle"

const say = (what) => {
  try {
    writeSync(2, "@rekindle " + JSON.stringify(what) + "\n")
  } catch {
    // Nobody listens: the agent's work continues.
  }
}

const state = (summary) =>
  new Promise((done) => {
    const options = { timeout: CONTEXT_MS, maxBuffer: 1 << 20 }
    execFile(CONTEXT[0], [...CONTEXT.slice(1), "--since", summary], options, (error, out) => done(error ? "" : out.trim()))
  })

export const Rekindle = async () => {
  let root
  let answer
  let window

  // The first session is the agent's own; later ones are those of agents that it starts itself.
  const ours = (id) => {
    if (id && !root) {
      root = id
      say({ session: id })
    }
    return Boolean(id) && id === root
  }

  return {
    event: async ({ event }) => {
      const found = event.properties ?? {}
      if (event.type === "session.created" && !found.info?.parentID) ours(found.sessionID ?? found.info?.id)
      if (event.type === "message.updated" && found.info?.role === "assistant") {
        if (found.info.sessionID === root) answer = found.info.id
      }
      if (!root || found.sessionID !== root) return
      if (event.type === "session.status" && found.status?.type === "retry") {
        const { attempt, message, next } = found.status
        say({ retry: { attempt, text: message, next, now: Date.now() } })
      }
      if (event.type === "session.compacted") say({ compacted: true })
      if (event.type === "session.idle") say({ idle: answer ?? "" })
    },
    "chat.message": async (input) => {
      ours(input.sessionID)
    },
    "chat.params": async (input) => {
      const size = input.model?.limit?.context
      const agent = input.agent?.name ?? input.agent
      if (input.sessionID !== root || agent === "title" || !size || size === window) return
      window = size
      say({ window: size })
    },
    "tool.execute.before": async (input, output) => {
      if (input.sessionID !== root) return
      const text = JSON.stringify(output.args ?? {})
      say({ call: { id: input.callID, tool: input.tool, input: text.slice(0, INPUT_CHARS) } })
    },
    "experimental.session.compacting": async (input) => {
      if (input.sessionID === root) say({ compacting: true })
    },
    "experimental.chat.messages.transform": async (_, output) => {
      const messages = output.messages ?? []
      const at = messages.findLastIndex((message) => message.info.summary === true)
      if (at < 0 || messages[at].info.sessionID !== root) return
      const text = await state(String(messages[at].info.id))
      if (!text) return
      const target = messages.slice(at + 1).find((message) => message.info.role === "user") ?? messages[at]
      const { id: messageID, sessionID } = target.info
      const part = { id: PART, messageID, sessionID, type: "text", synthetic: true, text }
      target.parts = [...target.parts.filter((other) => other.id !== PART), part]
    },
  }
}
