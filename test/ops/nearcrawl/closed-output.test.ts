/** `nearcrawl … | head`, with a real pipe of a shell: whoever reads has gone before anything is written. */
import { execFile } from "node:child_process";
import { expect, it } from "vitest";
import { builtProgram } from "../../support/built-command.ts";

/** What the shell line says on standard error; `$nearcrawl` stands for the command. */
async function said(line: string): Promise<string> {
  const nearcrawl = `${process.execPath} ${await builtProgram("ops/nearcrawl/main")}`;
  return await new Promise((resolve) => {
    execFile("sh", ["-c", line], { env: { ...process.env, nearcrawl } }, (_, __, stderr) => resolve(stderr));
  });
}

it("ends quietly and as it would have when nobody reads its output any more", async () => {
  expect(await said("{ $nearcrawl --help; echo ended with $? >&2; } | true")).toBe("ended with 0\n");
});

it("keeps its exit code when nobody reads what it complains of", async () => {
  const line = "exec 3>&2; { $nearcrawl no-such-command 2>&1 >/dev/null; echo ended with $? >&3; } | true";

  expect(await said(line)).toBe("ended with 2\n");
});
