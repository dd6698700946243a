// A client on the protocol's library for TypeScript, version 1.
// Arguments: the directory of the session, and the command of the agent. Prints one JSON object.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const acp = await import(`${process.env.ACP_SDK}/dist/v1/stable/acp.js`);
const [cwd, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

const updates = [];
const asked = [];
const app = acp
  .client({ name: "test" })
  .onNotification("session/update", ({ params }) => void updates.push(params))
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params);
    const allow = params.options.find((each) => each.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  });

const text = (steps) => [{ type: "text", text: JSON.stringify(steps) }];
const found = await app.connectWith(stream, async (ctx) => {
  const request = (method, params) => ctx.request(method, params);
  const initialized = await request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessionId, modes } = await request("session/new", { cwd, mcpServers: [] });
  const prompt = (steps) => request("session/prompt", { sessionId, prompt: text(steps) });
  const ended = await prompt([
    { do: "think", text: "hm" },
    { do: "say", text: "Hello", deltas: 2 },
    { do: "ask", tool: "Bash", input: { command: "ls" }, output: "a.py", effect: "command" },
    { do: "use", input: 3, output: 4 },
  ]);
  await request("session/set_mode", { sessionId, modeId: "full_auto" });
  await request("session/set_config_option", { sessionId, configId: "mode", value: "plan" });
  const cancelling = prompt([{ do: "say", text: "wait" }, { do: "hang" }]);
  while (!updates.some(({ update }) => update.content?.text === "wait")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await ctx.notify("session/cancel", { sessionId });
  const cancelled = await cancelling;
  let failure;
  await prompt([{ do: "fail", message: "no luck", kind: "auth_failed" }]).catch((error) => {
    failure = { code: error.code, message: error.message };
  });
  await request("session/close", { sessionId });
  const before = updates.length;
  await request("session/load", { sessionId, cwd, mcpServers: [] });
  // The library passes on updates that came before an answer after it, in their order.
  while (updates.length < before + 2) await new Promise((resolve) => setTimeout(resolve, 10));
  const replayed = updates.slice(before).map(({ update }) => update.sessionUpdate);
  const { sessions } = await request("session/list", {});
  return { initialized, modes, ended, cancelled, failure, replayed, sessions };
});
child.stdin.end();
const code = await new Promise((resolve) => child.on("exit", resolve));
const kinds = updates.map(({ update }) => update.sessionUpdate);
console.log(JSON.stringify({ ...found, asked, kinds, code }));
