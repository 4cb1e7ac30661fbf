/**
 * The attacks on updates of The Update Framework (specification 1.0.33, section 1.5.2), by whoever controls what the
 * coordinator serves, each against a supervisor with real children and a real server.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { ReleaseTimestamp, RootRoles } from "#protocol/release";
import { coSign, formatEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";
import { until } from "../../support/until.ts";
import {
  bundleText,
  newKey,
  offer,
  type Published,
  type RunningSupervisor,
  startSupervisor,
  writeSettings,
} from "./release-world.ts";
import { reasonOf, running, soonMs, supervised, useReleaseWorld, world } from "./supervisor-ground.ts";

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
const settled = () => supervised({}, "", () => clock);
const whyNot = (supervisor: RunningSupervisor, version: string) => reasonOf(supervisor, { version }) ?? "";

describe("freeze", () => {
  it("an expired statement stops updates but not the crawl, and a new one resumes them", async () => {
    state({});
    const supervisor = await settled();
    clock = new Date(Date.now() + 8 * dayMs);
    const next = world.publish("11.1.0", bundleText("11.1.0"), { expiresAt: inDays(60) });

    offer(supervisor.home, next);
    await until(() => supervisor.state().takesNothing !== null, soonMs);

    expect(supervisor.state().takesNothing?.reason).toMatch(/^what is newest was last stated until/);
    expect(supervisor.lines.join("\n")).toContain(
      "no release is taken until the coordinator serves what is newest",
    );
    expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
    expect(supervisor.home.notes().filter((note) => note.includes("ended"))).toEqual([]);

    state({ sequence: 2, createdAt: clock.toISOString(), expiresAt: inDays(15) });
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);
    expect(supervisor.state().takesNothing).toBeNull();
  });

  it("a coordinator that answers nothing cannot hide that its statement has expired", async () => {
    state({ expiresAt: inDays(1) });
    const supervisor = await settled();
    clock = new Date(Date.now() + 2 * dayMs);
    world.files.clear();
    world.files.set("/releases/keys.json", "nothing of ours");

    offer(supervisor.home, { version: "11.1.0", digest: "1".repeat(64), bytes: Buffer.alloc(0) });

    await until(() => supervisor.state().takesNothing !== null, soonMs);
    expect(supervisor.state().takesNothing?.reason).toMatch(/^what is newest was last stated until/);
  });

  it("a withheld list of revoked releases stops updates", async () => {
    const supervisor = await settled();
    state({ revocations: 5 });

    offer(supervisor.home, release("11.1.0"));

    await until(() => supervisor.state().takesNothing !== null, soonMs);
    expect(supervisor.state().takesNothing?.reason).toBe(
      "the list of revoked releases has number 5 by now, and the coordinator serves none",
    );
    await until(() => supervisor.lines.join("\n").includes("no release is taken: "), soonMs);
    expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
    world.revoke(5, release("0.9.0"));
    await until(() => supervisor.state().good?.version === "11.1.0", soonMs);
  });
});

describe("rollback", () => {
  it("below a release that was seen but never ran is refused", async () => {
    const supervisor = await settled();
    writeSettings(supervisor.home.path, '[releases]\npolicy = "pin"\npin = "11.1.0"\n');
    const [older, seen] = [release("11.1.0", 40), release("12.0.0", 50)];
    offer(supervisor.home, seen);
    await until(() => whyNot(supervisor, "12.0.0") !== "", soonMs);

    offer(supervisor.home, older);

    await until(() => whyNot(supervisor, "11.1.0") !== "", soonMs);
    expect(whyNot(supervisor, "11.1.0")).toContain("seen here before (number 40, not 50 or more)");
    expect(supervisor.state().current?.digest).toBe(supervisor.first.digest);
  });

  it("of a newcomer below the stated newest release is refused", async () => {
    state({ release: { version: "12.0.0", sequence: 50 } });
    world.offerToAll(release("11.0.0", 40));
    const supervisor = await startSupervisor(world.newHome(), {}, () => clock);
    running.push(supervisor);

    await until(() => supervisor.state().waitsFor !== null, soonMs);

    expect(supervisor.state().waitsFor?.reason).toContain("number 40, not 50 or more");
    expect(supervisor.state().current).toBeNull();
  });
});

describe("fast-forward", () => {
  it("a number beyond the clock is refused in a release, a list and a statement", async () => {
    const supervisor = await settled();
    const beyond = Date.now() + 2 * dayMs;
    offer(supervisor.home, release("9.0.0", beyond));
    await until(() => whyNot(supervisor, "9.0.0") !== "", soonMs);
    expect(whyNot(supervisor, "9.0.0")).toContain("it would shut out all that follow");

    state({ sequence: beyond });
    offer(supervisor.home, release("11.1.0", 60));
    await until(() => supervisor.state().good?.version === "11.1.0", soonMs);

    world.revoke(beyond, supervisor.first);
    offer(supervisor.home, release("11.2.0", 70));
    await until(
      () => supervisor.lines.join("\n").includes("the list of revoked releases has number"),
      soonMs,
    );
    expect(supervisor.state().current?.version).toBe("11.1.0");
    world.revoke(1);
    await until(() => supervisor.state().good?.version === "11.2.0", soonMs);
  });

  it("the highest numbers of a stolen key bind nobody once the key is retired", async () => {
    const supervisor = await settled();
    const thiefs = release("9.0.0", Date.now() + dayMs / 2);
    offer(supervisor.home, thiefs);
    await until(() => supervisor.state().good?.digest === thiefs.digest, soonMs);
    const next = newKey();
    const body = {
      product,
      sequence: 1,
      createdAt: inDays(0),
      newKey: rawPublicKey(next),
      retires: rawPublicKey(world.key),
    };
    world.files.set("/releases/keys.json", JSON.stringify({ rotations: [signBody("key", body, world.key)] }));

    offer(supervisor.home, release("11.1.0", Date.now(), next));

    await until(() => supervisor.state().good?.version === "11.1.0", soonMs);
  });
});

describe("key compromise", () => {
  it("a release key signs no list, root or statement once a root names another for it", async () => {
    const [second, revoking, stating] = [newKey(), newKey(), newKey()];
    const supervisor = await settled();
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
    offer(supervisor.home, next);
    await until(
      () => (supervisor.state().takesNothing?.reason ?? "").includes("not signed by a trusted key"),
      soonMs,
    );
    state({}, stating);
    await until(() => supervisor.state().good?.digest === next.digest, soonMs);

    world.revoke(1, next);
    offer(supervisor.home, release("11.2.0"));
    await until(
      () => supervisor.lines.join("\n").includes("the list of revoked releases: it is not signed"),
      soonMs,
    );
    expect(supervisor.state().current?.digest).toBe(next.digest);
  });

  it("a release that needs two keys is refused with one", async () => {
    const second = newKey();
    const supervisor = await settled();
    const both = { keys: [rawPublicKey(world.key), rawPublicKey(second)], threshold: 2 };
    const roles = { root: both, releases: both, revocations: both, timestamp: { ...both, threshold: 1 } };
    const body = { product, sequence: 1, createdAt: inDays(0), roles };
    const root = coSign(signBody("root", body, world.key), "root", second);
    world.files.set("/releases/keys.json", JSON.stringify({ rotations: [root] }));
    state({});

    offer(supervisor.home, release("11.1.0"));

    await until(() => whyNot(supervisor, "11.1.0") !== "", soonMs);
    expect(whyNot(supervisor, "11.1.0")).toBe("it takes 2 trusted keys, and 1 of them signed it");
  });
});
