/** Moves led by the coordinator over the real store: who may say what, and what a lost party causes. */
import { beforeEach, describe, expect, it } from "vitest";
import { Mover } from "#coordinator/place/crawlers/move-crawlers";
import { createMoveStore } from "#coordinator/place/crawlers/move-store";
import type { CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { type CrawlerMove, moveText } from "#protocol/move";
import { type TestIdentity, testIdentity } from "../gateway/sealing-crawler.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { newWorld } from "../support/store-world.ts";

const world = await forThisFile(newWorld());
let mover: Mover;
let now: Date;
let sent: { readonly to: CrawlerId; readonly what: string }[];
let refused: { readonly who: CrawlerId; readonly refusal: Refusal }[];
let athens: Party;
let sparta: Party;

interface Party extends TestIdentity {
  readonly id: CrawlerId;
}

beforeEach(async () => {
  await world.reset();
  now = new Date("2030-01-01T12:00:00Z");
  sent = [];
  refused = [];
  mover = new Mover({
    moves: createMoveStore(world.pool),
    send: (to, message: CoordinatorMessage) => {
      if (message.type === "coordinator:move") sent.push({ to, what: message.asks.what });
      return true;
    },
    refuse: (who, refusal) => refused.push({ who, refusal }) > 0,
    onMoved: async () => {},
    log: silentLog,
    now: () => now,
  });
  athens = await party("athens");
  sparta = await party("sparta");
});

async function party(name: string): Promise<Party> {
  const identity = testIdentity();
  const id = await world.crawler(name);
  await world.pool.query("update crawler set public_key = $2, state = 'online' where crawler_id = $1", [
    id,
    identity.publicKey,
  ]);
  return { id, ...identity };
}

const moves = () => createMoveStore(world.pool);
const digest = "0".repeat(64);

async function asked(): Promise<number> {
  const moveId = await moves().ask({ name: "athens", otherName: "sparta" }, now);
  if (typeof moveId === "string") throw new Error(moveId);
  await mover.review();
  return moveId;
}

const says = async (who: Party, moveId: number, said: CrawlerMove["says"]) =>
  await mover.onMessage(who.id, { type: "crawler:move", moveId, says: said });

async function packed(moveId: number, signer: Party = athens): Promise<void> {
  const text = moveText({ moveId, name: "athens", from: athens.publicKey, to: sparta.publicKey, digest });
  await says(athens, moveId, { what: "packed", bytes: 10, digest, signature: signer.sign(text) });
}

async function sending(): Promise<number> {
  const moveId = await asked();
  await says(sparta, moveId, { what: "ready" });
  await packed(moveId);
  return moveId;
}

const stepOf = async (moveId: number) => (await moves().find(moveId))?.step;
const keyOf = async (name: string) =>
  (
    await world.rows<{ public_key: string | null }>(`select public_key from crawler where name = '${name}'`)
  )[0]?.public_key;

describe("a move", () => {
  it("asks the other host first, then the crawler, and binds its name to that host when all has arrived", async () => {
    const moveId = await sending();
    await says(sparta, moveId, { what: "next", index: 0 });
    await says(athens, moveId, { what: "part", index: 0, part: "AAAA" });
    await says(sparta, moveId, { what: "arrived" });

    expect(sent).toEqual([
      { to: sparta.id, what: "make-ready" },
      { to: athens.id, what: "pack" },
      { to: sparta.id, what: "take" },
      { to: athens.id, what: "send" },
      { to: sparta.id, what: "part" },
    ]);
    expect(await stepOf(moveId)).toBe("moved");
    expect([await keyOf("athens"), await keyOf("sparta")]).toEqual([sparta.publicKey, null]);
    expect(refused.map(({ who, refusal }) => [who, refusal.code])).toEqual([
      [athens.id, "moved"],
      [sparta.id, "moved"],
    ]);
  });

  it("fails when the crawler did not sign its name over with its own key", async () => {
    const moveId = await asked();
    await says(sparta, moveId, { what: "ready" });

    await packed(moveId, sparta);

    expect(await stepOf(moveId)).toBe("failed");
    expect(await keyOf("athens")).toBe(athens.publicKey);
  });

  it("ignores other crawlers, messages out of turn, and unrequested parts", async () => {
    const stranger = await party("delos");
    const moveId = await sending();
    const before = sent.length;

    await says(stranger, moveId, { what: "arrived" });
    await says(athens, moveId, { what: "arrived" });
    await says(athens, moveId, { what: "part", index: 0, part: "AAAA" });
    await says(sparta, moveId, { what: "next", index: 1 });

    expect(await stepOf(moveId)).toBe("sending");
    expect(sent.length).toBe(before);
  });

  it.each(["athens", "sparta"])(
    "fails when %s is lost before the commit, and the other one is told",
    async (lost) => {
      const moveId = await sending();

      await mover.onLeave(lost === "athens" ? athens.id : sparta.id, "killed");

      expect(await moves().find(moveId)).toMatchObject({ step: "failed", words: `${lost} was lost: killed` });
      expect(sent.filter(({ what }) => what === "failed").length).toBe(2);
      expect(await keyOf("athens")).toBe(athens.publicKey);
    },
  );

  it("fails when nothing happens for too long, and when the coordinator restarts", async () => {
    const first = await sending();
    now = new Date(now.getTime() + 61_000);
    await mover.review();
    const second = await sending();
    await mover.start();

    expect(await moves().find(first)).toMatchObject({ step: "failed", words: /nothing happened for 60 s/ });
    expect(await stepOf(second)).toBe("failed");
  });

  it("is committed or fails, never both, when the crawler returns during the commit (20 times)", async () => {
    for (let round = 0; round < 20; round++) {
      const moveId = await sending();
      const arrival = { crawlerId: athens.id, name: "athens", publicKey: athens.publicKey };

      const [refusal] = await Promise.all([
        mover.onArrival(arrival),
        says(sparta, moveId, { what: "arrived" }),
      ]);

      const isMoved = (await stepOf(moveId)) === "moved";
      expect(refusal?.code ?? "let in").toBe(isMoved ? "moved" : "let in");
      expect(await keyOf("athens")).toBe(isMoved ? sparta.publicKey : athens.publicKey);
      await world.pool.query("update crawler set public_key = null");
      for (const { id, publicKey } of [athens, sparta])
        await world.pool.query("update crawler set public_key = $2 where crawler_id = $1", [id, publicKey]);
    }
  });
});

describe("a move is refused", () => {
  const refusals: readonly (readonly [string, string, string])[] = [
    ["no-such-crawler", "delete from crawler where name = 'athens'", "a crawler that is not there"],
    ["offline", "update crawler set state = 'offline' where name = 'athens'", "one that is not connected"],
    ["host-offline", "update crawler set state = 'offline' where name = 'sparta'", "a host that is not"],
    ["no-identity", "update crawler set public_key = null where name = 'sparta'", "one without an identity"],
    ["shut-out", "update crawler set revoked_at = now() where name = 'athens'", "one that was shut out"],
  ];

  it.each(refusals)("%s", async (refusal, change) => {
    await world.pool.query(change);

    expect(await moves().ask({ name: "athens", otherName: "sparta" }, now)).toBe(refusal);
  });

  it("to a crawler that already takes part in another move", async () => {
    await asked();

    expect(await moves().ask({ name: "sparta", otherName: "athens" }, now)).toBe("moving");
  });
});
