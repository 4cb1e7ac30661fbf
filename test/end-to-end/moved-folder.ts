/** What is in a crawler's folder after a move. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The public key in a folder. */
export function readIdentity(home: string): string {
  return (JSON.parse(readFileSync(join(home, "identity.json"), "utf8")) as { publicKey: string }).publicKey;
}

const secretOrStale = [
  ...["identity.json", "membership.json", "identity.json.before", "membership.json.before"],
  ...["spool", "host-paces.json", "robots-rules.json", "moving"],
];

/** Of what a crawler that has gone must not leave behind, what is there. */
export function readKept(home: string): string[] {
  return secretOrStale.filter((name) => existsSync(join(home, name)));
}
