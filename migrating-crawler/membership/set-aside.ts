/**
 * A folder that joins anew becomes somebody else: identity, membership and releases are set aside, not thrown away, until the
 * coordinator has given the new ones a key. If it refuses them, the crawler is who it was. A crash at any point leaves
 * what the next join goes on from.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { releasesFolder } from "../supervisor/release-pins.ts";
import { identityFile } from "./identity.ts";
import { membershipFile } from "./membership.ts";

/**
 * In this order: a membership without its identity is noticed, and taken further. What the dock believes belongs to
 * the membership, too: a new invitation may pin other keys.
 */
const files = [membershipFile, identityFile, releasesFolder];
const aside = (file: string) => `${file}.before`;

export function setAside(home: string): void {
  for (const file of files.map((of) => of(home))) {
    if (existsSync(file) && !existsSync(aside(file))) renameSync(file, aside(file));
  }
}

/** A crash came between setting aside and the new membership. */
export function isBeingSetAside(home: string): boolean {
  return existsSync(aside(membershipFile(home))) && !existsSync(membershipFile(home));
}

/** False when nothing was set aside. */
export function takeBack(home: string): boolean {
  const before = files.map((of) => of(home)).filter((file) => existsSync(aside(file)));
  for (const file of before.reverse()) {
    if (file === releasesFolder(home)) rmSync(file, { recursive: true, force: true });
    renameSync(aside(file), file);
  }
  return before.length > 0;
}

export function forgetBefore(home: string): void {
  for (const file of files) rmSync(aside(file(home)), { recursive: true, force: true });
}
