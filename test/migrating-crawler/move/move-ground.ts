/** Folders of two hosts: one whose crawler moves with waiting results, and one that receives it. */
import { realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeMembership } from "#crawler/core/membership";
import { openIdentity } from "#crawler/membership/identity";
import { type Pack, PackReceiver, readPart, writeJournal, writePack } from "#crawler/move/pack";
import { Spool } from "#crawler/spool/spool";
import { partsOf } from "#protocol/move";
import { packResult } from "#protocol/packed/message-frames";
import { arrivedResult } from "../../support/store-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface MoveGround {
  readonly from: string;
  readonly to: string;
}

const soonMs = 3_600_000;

export function paceOf(host: string, notBeforeMs: number) {
  const pace = { notBeforeMs, crawlDelayMs: 0, backOffMs: 0, backedOffAtMs: 0, usualMs: 0 };
  return { host, ...pace, answers: 1, lastMs: 1, failures: 0 };
}

export function newMoveGround(): MoveGround {
  const folder = realpathSync(temporaryFolder("nearcrawl-move-"));
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  for (const [home, name] of [
    [from, "athens"],
    [to, "sparta"],
  ] as const) {
    fillSpool(home, name === "athens" ? 3 : 0);
    openIdentity(home);
    writeMembership(home, {
      coordinatorUrl: "ws://127.0.0.1:1/crawler",
      name,
      certificatePin: null,
      releaseKeys: ["A".repeat(43)],
      releaseThreshold: 1,
      key: `key of ${name}, long enough`,
      ticket: null,
    });
  }
  const now = Date.now();
  const paces = (...hosts: readonly ReturnType<typeof paceOf>[]) => JSON.stringify({ version: 1, hosts });
  writeFileSync(join(from, "host-paces.json"), paces(paceOf("a.example", now + soonMs)));
  writeFileSync(
    join(to, "host-paces.json"),
    paces(paceOf("a.example", now + 2 * soonMs), paceOf("b.example", now)),
  );
  return { from, to };
}

function fillSpool(home: string, results: number): void {
  const spool = new Spool({ home, maxBytes: 1e9 });
  for (let at = 1; at <= results; at++) {
    const { result } = arrivedResult({ sequence: at, leaseId: "7", url: `http://a.example/${at}` });
    spool.append("7", packResult("7", result));
  }
  spool.close();
}

/** Completes the transfer up to the coordinator's decision. */
export function arriveAll({
  from,
  to,
  name = "athens",
  moveId = 1,
}: Pick<MoveGround, "from" | "to"> & { readonly name?: string; readonly moveId?: number }): Pack {
  const pack = writePack(from, { withResults: true });
  const receiver = new PackReceiver(to, pack);
  for (let index = 0; index < partsOf(pack.bytes); index++) receiver.add(index, readPart(from, index));
  receiver.finish();
  writeJournal(from, { way: "out", moveId, name, step: "waiting" });
  writeJournal(to, { way: "in", moveId, name, step: "waiting" });
  return pack;
}

export function spoolIn(home: string): { readonly id: string; readonly waiting: number } {
  const spool = new Spool({ home, maxBytes: 1e9 });
  const { id, waiting } = spool;
  spool.close();
  return { id, waiting };
}
