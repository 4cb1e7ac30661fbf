/** The software as it was released last, built from its tag: what a rolling upgrade begins with. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/built-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** NEARCRAWL_LAST_RELEASE names it, as tag or commit; else it is the newest tag v…; null: there is none, or no repository. */
export function lastRelease(): string | null {
  const { NEARCRAWL_LAST_RELEASE: named } = process.env;
  if (named) return named;
  try {
    return execFileSync("git", ["describe", "--tags", "--match", "v*", "--abbrev=0"], {
      ...{ cwd: projectRoot, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
    }).trim();
  } catch {
    return null;
  }
}

/** Its files in a folder of their own, with the packages that are here, built. Returns the folder. */
export function builtRelease(ref: string): string {
  const folder = temporaryFolder("nearcrawl-release-");
  const archive = execFileSync("git", ["archive", "--format=tar", ref], {
    cwd: projectRoot,
    maxBuffer: 1 << 30,
  });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  // A folder of its own: the build links its command into it.
  const [theirs, ours] = [join(folder, "node_modules"), join(projectRoot, "node_modules")];
  mkdirSync(theirs);
  for (const name of readdirSync(ours).filter((one) => !one.startsWith(".")))
    symlinkSync(join(ours, name), join(theirs, name));
  execFileSync(process.execPath, [join(folder, "ops/build.mjs"), "--unchecked"], { stdio: "ignore" });
  if (!existsSync(join(folder, "dist"))) throw new Error(`${ref} was not built`);
  return folder;
}
