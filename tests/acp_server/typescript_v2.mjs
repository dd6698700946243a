// A client on the protocol's library for TypeScript, version 2.
// Arguments: the directory of the session, and the command of the agent. Prints one JSON object.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const acp = await import(`${process.env.ACP_SDK}/dist/v2/stable/acp.js`);
const [cwd, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const updates = [];
const asked = [];
const app = acp
  .client({ name: "test" })
  .onNotification("session/update", ({ params }) => void updates.push(params.update))
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params);
    const reject = params.options.find((each) => each.kind === "reject_once");
    return { outcome: { outcome: "selected", optionId: reject.optionId } };
  });

const text = (steps) => [{ type: "text", text: JSON.stringify(steps) }];
const idles = () => updates.filter(({ state }) => state === "idle");
const found = await app.connectWith(stream, async (ctx) => {
  const request = (method, params) => ctx.request(method, params);
  const initialized = await request("initialize", {
    protocolVersion: 2,
    info: { name: "test", version: "1" },
    capabilities: {},
  });
  const { sessionId } = await request("session/new", { cwd, mcpServers: [] });
  const prompt = (steps) => request("session/prompt", { sessionId, prompt: text(steps) });
  const first = await prompt([
    { do: "say", text: "Hello", deltas: 2 },
    { do: "ask", tool: "Bash", input: { command: "ls" }, effect: "command" },
    { do: "tool", name: "Read", input: { path: "/a" }, output: "A", prints: ["A"] },
  ]);
  const second = await prompt([{ do: "fail", message: "no luck" }]);
  const third = await prompt([{ do: "hang" }]);
  await ctx.notify("session/cancel", { sessionId });
  while (idles().length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  const before = updates.length;
  await request("session/resume", { sessionId, cwd, replayFrom: { type: "start" } });
  // The library passes on updates that came before an answer after it, in their order.
  while (updates.at(-1).state !== "idle" || updates.length === before) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const replayed = updates.slice(before).map(({ sessionUpdate }) => sessionUpdate);
  return { initialized, messages: [first, second, third], replayed };
});
child.stdin.end();
const code = await new Promise((resolve) => child.on("exit", resolve));
console.log(JSON.stringify({ ...found, asked, updates, code }));
