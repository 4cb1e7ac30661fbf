// One side of the extraction benchmark, bundled for the checkout that it measures (`#crawler` is that one's): bytes in,
// results out, as a thread of the crawler does it. Answers over the IPC channel.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extractPage } from "#crawler/extract/extract-page";

const nowMs = Date.parse("2026-11-22T12:00:00Z");
const sets = Object.fromEntries(
  Object.entries(JSON.parse(readFileSync(process.argv[2], "utf8"))).map(([name, pages]) => [
    name,
    pages.map((page) => ({ ...page, bytes: Buffer.from(page.bytes, "base64") })),
  ]),
);

/** The thread gets a copy of its own of each body, whose digest the fetch has made. */
function extract({ bytes, ...facts }) {
  return extractPage({
    ...facts,
    bytes: Buffer.from(bytes),
    contentLanguage: null,
    robotsTag: undefined,
    nowMs,
    quiet,
  });
}

function digestOf(extracted) {
  return createHash("sha256").update(JSON.stringify(extracted)).digest("hex");
}

async function quiet() {}

async function pass(set, passes) {
  for (let round = 0; round < passes; round++) for (const page of sets[set]) await extract(page);
}

process.on("message", async (message) => {
  if (message?.type === "pass") {
    await pass(message.set, message.passes);
    process.send({ type: "passed" });
  } else if (message?.type === "print") {
    const prints = [];
    for (const page of sets[message.set]) prints.push(digestOf(await extract(page)));
    process.send({ type: "printed", prints });
  }
});
process.send({ type: "ready" });
