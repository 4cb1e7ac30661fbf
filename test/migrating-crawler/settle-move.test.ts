/** The folders of both hosts after the coordinator's decision, also when a process is killed in between. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { readMembership } from "#crawler/core/membership";
import { folderKind } from "#crawler/membership/home-folder";
import { openIdentity } from "#crawler/membership/identity";
import { SigningKeys, signingKeysFile } from "#crawler/membership/signing-keys";
import { readJournal, writeJournal } from "#crawler/move/pack";
import { finishMove, settleMove, settlingSteps } from "#crawler/resident-crawler";
import { arriveAll, type MoveGround, newMoveGround, spoolIn } from "./move/move-ground.ts";

let ground: MoveGround;
beforeEach(() => {
  ground = newMoveGround();
});

/** Simulates a kill after this many steps; false when all steps were done before. */
function killedAfter(steps: number, home: string): boolean {
  const journal = { ...readJournal(home)!, step: "settling" } as const;
  writeJournal(home, journal);
  const all = settlingSteps(home, journal);
  for (const step of all.slice(0, steps)) step();
  return steps < all.length;
}

describe("the host that receives a crawler", () => {
  it("becomes that crawler, with its results, and keeps its own identity and key", () => {
    const own = { ...readMembership(ground.to)! };
    const { publicKey } = openIdentity(ground.to);
    const { id } = spoolIn(ground.from);
    arriveAll(ground);

    expect(settleMove(ground.to)).toBe("became");

    expect(readMembership(ground.to)).toEqual({ ...own, name: "athens" });
    expect(openIdentity(ground.to).publicKey).toBe(publicKey);
    expect(spoolIn(ground.to)).toEqual({ id, waiting: 3 });
    expect(existsSync(join(ground.to, "moving"))).toBe(false);
  });

  it.each([0, 1, 2, 3, 4, 5])(
    "becomes that crawler when it is started again after a kill at step %i",
    (steps) => {
      const { id } = spoolIn(ground.from);
      arriveAll(ground);

      expect(killedAfter(steps, ground.to)).toBe(true);
      expect(finishMove(ground.to)).toBe("became");

      expect(readMembership(ground.to)?.name).toBe("athens");
      expect(spoolIn(ground.to)).toEqual({ id, waiting: 3 });
    },
  );
});

describe("the host that a crawler leaves", () => {
  beforeEach(() => {
    const identity = openIdentity(ground.from);
    new SigningKeys({ home: ground.from, identity, log: quietLog, send: () => {} }).onWelcome(true);
    expect(existsSync(signingKeysFile(ground.from))).toBe(true);
  });

  it("keeps only a note of it, and its folder can join again or be uninstalled", () => {
    arriveAll(ground);

    expect(settleMove(ground.from)).toBe("gone");

    expect(readdirSync(ground.from)).toEqual(["moved.json"]);
    expect(folderKind(ground.from)).toBe("crawler");
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    "has no key when it is started again after a kill at step %i",
    (steps) => {
      arriveAll(ground);

      expect(killedAfter(steps, ground.from)).toBe(true);
      expect(finishMove(ground.from)).toBe("gone");

      expect(readdirSync(ground.from)).toEqual(["moved.json"]);
    },
  );
});

it("a refusal with `moved` changes nothing in a folder without a move", () => {
  expect(settleMove(ground.from)).toBe("nothing");

  expect(existsSync(join(ground.from, "identity.json"))).toBe(true);
  expect(spoolIn(ground.from).waiting).toBe(3);
});

it("an undecided move changes nothing when the crawler is started again", () => {
  arriveAll(ground);

  expect([finishMove(ground.from), finishMove(ground.to)]).toEqual(["nothing", "nothing"]);

  expect(readMembership(ground.to)?.name).toBe("sparta");
  expect(spoolIn(ground.from).waiting).toBe(3);
});
