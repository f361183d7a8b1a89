// rekindle guard
import { spawn } from "node:child_process"

const REKINDLE = "__REKINDLE__"

const tell = (what) => {
  try {
    const hook = spawn(REKINDLE, ["hook", "opencode"], { stdio: ["pipe", "ignore", "ignore"] })
    hook.on("error", () => {})
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(what))
  } catch {
    // Nobody listens: the session goes on.
  }
}

export const RekindleGuard = async () => ({ event: async ({ event }) => tell(event) })
