/**
 * The attacks on updates of The Update Framework (specification 1.0.33, section 1.5.2), by whoever controls what the
 * coordinator serves, each against a supervisor with real children and a real server.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { ReleaseTimestamp } from "#protocol/release";
import { coSign, formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import type { RootRoles } from "#protocol/release-roles";
import { until } from "../../support/until.ts";
import {
  bundleText,
  newKey,
  offer,
  type Published,
  type RunningDock,
  startDock,
  writeSettings,
} from "./release-world.ts";
import { docked, reasonOf, running, soonMs, useReleaseWorld, world } from "./supervisor-ground.ts";

useReleaseWorld();

const dayMs = 86_400_000;
const product = "nearcrawl-crawler";
/** The supervisors' current time. */
let clock: Date;
beforeEach(() => {
  clock = new Date();
});

const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString();

function state(wanted: Partial<ReleaseTimestamp>, key = world.key): void {
  const said = {
    product,
    sequence: 1,
    createdAt: inDays(0),
    expiresAt: inDays(7),
    release: null,
    revocations: 0,
  };
  world.files.set(
    "/releases/timestamp.json",
    formatEnvelope(signBody("timestamp", { ...said, ...wanted }, key)),
  );
}

function release(version: string, sequence?: number, key = world.key): Published {
  return world.publish(version, bundleText(version), sequence === undefined ? {} : { sequence }, key);
}

/** A supervisor whose first release runs well. */
const settled = () => docked({}, "", () => clock);
const whyNot = (dock: RunningDock, version: string) => reasonOf(dock, { version }) ?? "";

describe("freeze", () => {
  it("an expired statement ends updates, not the crawl, and a new one begins them again", async () => {
    state({});
    const dock = await settled();
    clock = new Date(Date.now() + 8 * dayMs);
    const next = world.publish("11.1.0", bundleText("11.1.0"), { expiresAt: inDays(60) });

    offer(dock.home, next);
    await until(() => dock.state().takesNothing !== null, soonMs);

    expect(dock.state().takesNothing?.reason).toMatch(/^what is newest was last stated until/);
    expect(dock.lines.join("\n")).toContain(
      "no release is taken until the coordinator serves what is newest",
    );
    expect(dock.state().current?.digest).toBe(dock.first.digest);
    expect(dock.home.notes().filter((note) => note.includes("ended"))).toEqual([]);

    state({ sequence: 2, createdAt: clock.toISOString(), expiresAt: inDays(15) });
    await until(() => dock.state().good?.digest === next.digest, soonMs);
    expect(dock.state().takesNothing).toBeNull();
  });

  it("a coordinator that answers nothing keeps from nobody that its statement has expired", async () => {
    state({ expiresAt: inDays(1) });
    const dock = await settled();
    clock = new Date(Date.now() + 2 * dayMs);
    world.files.clear();
    world.files.set("/releases/keys.json", "nothing of ours");

    offer(dock.home, { version: "11.1.0", digest: "1".repeat(64), bytes: Buffer.alloc(0) });

    await until(() => dock.state().takesNothing !== null, soonMs);
    expect(dock.state().takesNothing?.reason).toMatch(/^what is newest was last stated until/);
  });

  it("a list of revoked releases that is withheld ends updates", async () => {
    const dock = await settled();
    state({ revocations: 5 });

    offer(dock.home, release("11.1.0"));

    await until(() => dock.state().takesNothing !== null, soonMs);
    expect(dock.state().takesNothing?.reason).toBe(
      "the list of revoked releases has number 5 by now, and the coordinator serves none",
    );
    await until(() => dock.lines.join("\n").includes("no release is taken: "), soonMs);
    expect(dock.state().current?.digest).toBe(dock.first.digest);
    world.revoke(5, release("0.9.0"));
    await until(() => dock.state().good?.version === "11.1.0", soonMs);
  });
});

describe("rollback", () => {
  it("below a release that was seen here, though it never ran, is refused", async () => {
    const dock = await settled();
    writeSettings(dock.home.path, '[releases]\npolicy = "pin"\npin = "11.1.0"\n');
    const [older, seen] = [release("11.1.0", 40), release("12.0.0", 50)];
    offer(dock.home, seen);
    await until(() => whyNot(dock, "12.0.0") !== "", soonMs);

    offer(dock.home, older);

    await until(() => whyNot(dock, "11.1.0") !== "", soonMs);
    expect(whyNot(dock, "11.1.0")).toContain("seen here before (number 40, not 50 or more)");
    expect(dock.state().current?.digest).toBe(dock.first.digest);
  });

  it("of a newcomer, below what is stated to be the newest for all, is refused", async () => {
    state({ release: { version: "12.0.0", sequence: 50 } });
    world.offerToAll(release("11.0.0", 40));
    const dock = await startDock(world.newHome(), {}, () => clock);
    running.push(dock);

    await until(() => dock.state().waitsFor !== null, soonMs);

    expect(dock.state().waitsFor?.reason).toContain("number 40, not 50 or more");
    expect(dock.state().current).toBeNull();
  });
});

describe("fast-forward", () => {
  it("a number beyond the clock is refused in a release, a list and a statement", async () => {
    const dock = await settled();
    const beyond = Date.now() + 2 * dayMs;
    offer(dock.home, release("9.0.0", beyond));
    await until(() => whyNot(dock, "9.0.0") !== "", soonMs);
    expect(whyNot(dock, "9.0.0")).toContain("it would shut out all that follow");

    state({ sequence: beyond });
    offer(dock.home, release("11.1.0", 60));
    await until(() => dock.state().good?.version === "11.1.0", soonMs);

    world.revoke(beyond, dock.first);
    offer(dock.home, release("11.2.0", 70));
    await until(() => dock.lines.join("\n").includes("the list of revoked releases has number"), soonMs);
    expect(dock.state().current?.version).toBe("11.1.0");
    world.revoke(1);
    await until(() => dock.state().good?.version === "11.2.0", soonMs);
  });

  it("what a stolen key has numbered as high as it could binds nobody once the key is retired", async () => {
    const dock = await settled();
    const thiefs = release("9.0.0", Date.now() + dayMs / 2);
    offer(dock.home, thiefs);
    await until(() => dock.state().good?.digest === thiefs.digest, soonMs);
    const next = newKey();
    const body = {
      product,
      sequence: 1,
      createdAt: inDays(0),
      newKey: rawPublicKey(next),
      retires: rawPublicKey(world.key),
    };
    world.files.set("/releases/keys.json", JSON.stringify({ rotations: [signBody("key", body, world.key)] }));

    offer(dock.home, release("11.1.0", Date.now(), next));

    await until(() => dock.state().good?.version === "11.1.0", soonMs);
  });
});

describe("key compromise", () => {
  it("a release key signs no list once a root names another for it, nor a root, nor a statement", async () => {
    const [second, revoking, stating] = [newKey(), newKey(), newKey()];
    const dock = await settled();
    const roles: RootRoles["roles"] = {
      root: { keys: [rawPublicKey(world.key), rawPublicKey(second)], threshold: 2 },
      releases: { keys: [rawPublicKey(world.key)], threshold: 1 },
      revocations: { keys: [rawPublicKey(revoking)], threshold: 1 },
      timestamp: { keys: [rawPublicKey(stating)], threshold: 1 },
    };
    const body = (sequence: number, stated: RootRoles["roles"]) => ({
      product,
      sequence,
      createdAt: inDays(0),
      roles: stated,
    });
    const root = coSign(signBody("root", body(1, roles), world.key), "root", second);
    const forged = signBody(
      "root",
      body(2, { ...roles, root: { keys: [rawPublicKey(world.key)], threshold: 1 } }),
      world.key,
    );
    world.files.set("/releases/keys.json", JSON.stringify({ rotations: [root, forged] }));

    // Nobody states the newest release yet, and a thief of the release key cannot.
    state({});
    const next = release("11.1.0");
    offer(dock.home, next);
    await until(
      () => (dock.state().takesNothing?.reason ?? "").includes("not signed by a trusted key"),
      soonMs,
    );
    state({}, stating);
    await until(() => dock.state().good?.digest === next.digest, soonMs);

    world.revoke(1, next);
    offer(dock.home, release("11.2.0"));
    await until(
      () => dock.lines.join("\n").includes("the list of revoked releases: it is not signed"),
      soonMs,
    );
    expect(dock.state().current?.digest).toBe(next.digest);
  });

  it("a release that takes two keys is refused with one", async () => {
    const second = newKey();
    const dock = await settled();
    const both = { keys: [rawPublicKey(world.key), rawPublicKey(second)], threshold: 2 };
    const roles = { root: both, releases: both, revocations: both, timestamp: { ...both, threshold: 1 } };
    const body = { product, sequence: 1, createdAt: inDays(0), roles };
    const root = coSign(signBody("root", body, world.key), "root", second);
    world.files.set("/releases/keys.json", JSON.stringify({ rotations: [root] }));
    state({});

    offer(dock.home, release("11.1.0"));

    await until(() => whyNot(dock, "11.1.0") !== "", soonMs);
    expect(whyNot(dock, "11.1.0")).toBe("it takes 2 trusted keys, and 1 of them signed it");
  });
});
