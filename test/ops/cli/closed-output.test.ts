/** `nearcrawl … | head` in a real shell: the reader is gone before anything is written. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readerGone } from "#crawler/cli/closed-output";
import { builtProgram, projectRoot } from "../../support/built-command.ts";

/** The standard error of a shell line; `$nearcrawl` and `$crawler` stand for the two programs. */
async function said(line: string, variables: Readonly<Record<string, string>> = {}): Promise<string> {
  const nearcrawl = `${process.execPath} ${await builtProgram("ops/cli/main")}`;
  const crawler = `${process.execPath} ${join(projectRoot, "dist/nearcrawl-crawler.mjs")}`;
  const env = { ...process.env, ...variables, nearcrawl, crawler };
  return await new Promise((resolve) => {
    execFile("sh", ["-c", line], { env, timeout: 30_000 }, (_, __, stderr) => resolve(stderr));
  });
}

it.each(["nearcrawl", "crawler"])(
  "%s ends quietly and as it would have when nobody reads its output",
  async (name) => {
    expect(await said(`{ $${name} --help; echo ended with $? >&2; } | true`)).toBe("ended with 0\n");
  },
);

it("keeps its exit code when its standard error is closed", async () => {
  const line = "exec 3>&2; { $nearcrawl no-such-command 2>&1 >/dev/null; echo ended with $? >&3; } | true";

  expect(await said(line)).toBe("ended with 2\n");
});

it.runIf(process.platform === "linux")(
  "a view leaves SIGPIPE ignored: a socket that breaks ends neither it nor its process",
  () => {
    readerGone();

    // proc_pid_status(5): a mask of the signals that are ignored, SIGPIPE is the 13th.
    const [, ignored] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))!;
    expect(BigInt(`0x${ignored}`) & (1n << 12n)).toBe(1n << 12n);
  },
);
