/** Commands of ops/runbook/scaling.md, run in a shell as they stand there. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Database } from "#db/server-database";
import { projectRoot } from "../support/built-command.ts";

const guide = readFileSync(join(projectRoot, "ops/runbook/scaling.md"), "utf8");

/** The blocks marked `sh` between this heading and the next one. */
export function blocksBelow(heading: string): string[] {
  const part = guide.split(/^##+ /m).find((text) => text.startsWith(`${heading}\n`));
  return [...(part ?? "").matchAll(/```sh\n(.+?)```/gs)].map(([, lines]) => lines!);
}

/** The settings of curl that the guide's commands go by, without credentials. */
export function curlSettings(): string {
  const [, lines = ""] = /^# ~\/\.curlrc\n(.+?)^```/ms.exec(guide) ?? [];
  return lines.replace(/^(user|cacert) .*\n/gm, "");
}

interface Shell {
  /** The working folder, where programs are looked for first. */
  readonly folder: string;
  readonly database: Pick<Database, "url" | "schema">;
  readonly env?: NodeJS.ProcessEnv;
  readonly withinMs: number;
}

/** Returns what is printed. Fails with the end of standard error unless every line succeeds. */
export async function runLines(lines: string, { folder, database, env, withinMs }: Shell): Promise<string> {
  const loader = join(projectRoot, "node_modules/tsx/dist/loader.mjs");
  const program = `--conditions=nearcrawl-source --import ${loader} ${projectRoot}/ops/cli/main.ts`;
  writeFileSync(join(folder, "nearcrawl"), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`);
  chmodSync(join(folder, "nearcrawl"), 0o755);
  const shell = spawn("sh", ["-ec", lines], {
    ...{ cwd: folder, detached: true, stdio: ["ignore", "pipe", "pipe"] },
    env: {
      ...process.env,
      ...{ DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema, NEARCRAWL_HOME: folder },
      ...{ ...env, PATH: [folder, env?.PATH ?? process.env.PATH].join(delimiter) },
    },
  });
  let [told, said] = ["", ""];
  shell.stdout!.on("data", (piece) => (told = `${told}${piece}`));
  shell.stderr!.on("data", (piece) => (said = `${said}${piece}`.slice(-2000)));
  // With all that the shell started.
  const late = setTimeout(() => process.kill(-shell.pid!, "SIGKILL"), withinMs);
  const [code] = await once(shell, "close");
  clearTimeout(late);
  if (code !== 0) throw new Error(`${lines}\nended with ${code}: ${said}${told.slice(-2000)}`);
  return told;
}
