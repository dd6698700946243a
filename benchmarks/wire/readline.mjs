// Node's usual way: readline and JSON.parse, in the same shape as the others.
// node readline.mjs FUNCTION [--smoke]; prints one JSON object, figure by name.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [how, ...rest] = process.argv.slice(2);
const smoke = rest.includes("--smoke");
const lines = smoke ? 500 : 100_000;
const blocks = smoke ? 1 : 5;

const shape = (text) =>
  '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":' +
  `{"type":"text_delta","text":"${text}"}},"session_id":"9480d611-136c-4184-9eb5-c9d8b47aa49a",` +
  '"parent_tool_use_id":null,"uuid":"0c105e80-17b6-4a33-aef4-53e539e71da0"}';
const line = shape("x".repeat(299 - shape("").length)) + "\n";

function normalised(text) {
  const frame = JSON.parse(text);
  if (frame.type !== "stream_event") return null;
  const event = frame.event;
  if (event.type !== "content_block_delta" || event.delta.type !== "text_delta") return null;
  return { session: frame.session_id, delta: event.delta.text };
}

const ways = {
  lines(stdout, take) {
    createInterface({ input: stdout, crlfDelay: Infinity }).on("line", (text) => take([text]));
  },
  chunks(stdout, take) {
    let tail = "";
    stdout.setEncoding("utf8").on("data", (chunk) => {
      const whole = (tail + chunk).split("\n");
      tail = whole.pop();
      take(whole);
    });
  },
};

function once(path, wanted) {
  return new Promise((done) => {
    const child = spawn("cat", [path], { stdio: ["ignore", "pipe", "inherit"] });
    const before = process.cpuUsage();
    let seen = 0;
    ways[how](child.stdout, (texts) => {
      for (const text of texts) if (normalised(text) !== null) seen += 1;
      if (seen === wanted) {
        const { user, system } = process.cpuUsage(before);
        done((user + system) / wanted);
      }
    });
  });
}

const directory = mkdtempSync(join(tmpdir(), "sessionmgr-benchmark-"));
try {
  const path = join(directory, "lines.jsonl");
  writeFileSync(path, line.repeat(lines));
  await once(path, lines); // warm: its compiler needs more of it than others do
  const costs = [];
  for (let block = 0; block < blocks; block += 1) costs.push(await once(path, lines));
  costs.sort((a, b) => a - b);
  console.log(JSON.stringify({ event: costs[Math.floor(costs.length / 2)] }));
} finally {
  rmSync(directory, { recursive: true });
}
