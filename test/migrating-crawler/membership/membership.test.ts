/** A crawler's private files: who may read them, the effect of crashes and strangers, and the identity. */
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { ConfigError } from "#core/errors";
import { quietLog } from "#crawler/core/log";
import { type Membership, membershipFile, readMembership, writeMembership } from "#crawler/core/membership";
import { identityFile, openIdentity } from "#crawler/membership/identity";
import { Member, openMember } from "#crawler/membership/member";
import { crawlerConfig } from "#crawler/settings/config";
import { helloText, isSignedBy } from "#protocol/identity";
import { helloOf } from "../../gateway/gateway-on-loopback.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const membership: Membership = {
  coordinatorUrl: "wss://search.example/crawler",
  name: "athens-1",
  certificatePin: "A".repeat(43),
  releaseKeys: ["B".repeat(43)],
  releaseThreshold: 1,
  key: "a-key-of-its-own-0123",
  ticket: null,
};

let home = "";
beforeEach(() => {
  home = temporaryFolder("nearcrawl-member-");
});

const modeOf = (file: string) => statSync(file).mode & 0o777;

describe("a membership", () => {
  it("is null in a folder without one, and is read as it was written, readable by its owner only", () => {
    expect(readMembership(home)).toBeNull();

    writeMembership(home, membership);

    expect(readMembership(home)).toEqual(membership);
    expect(modeOf(membershipFile(home))).toBe(0o600);
    expect(readdirSync(home)).toEqual(["membership.json"]);
  });

  it("that is truncated is reported by file name, and left unchanged", () => {
    const torn = JSON.stringify(membership).slice(0, 60);
    writeFileSync(membershipFile(home), torn);

    expect(() => readMembership(home)).toThrow(ConfigError);
    expect(() => readMembership(home)).toThrow(
      /membership\.json: this is no whole JSON file\. It is left as it is\./,
    );
    expect(() => crawlerConfig({ home })).toThrow(/membership\.json/);
    expect(readFileSync(membershipFile(home), "utf8")).toBe(torn);
  });

  it.each([
    [
      { ...membership, coordinatorUrl: "http://elsewhere.example" },
      /coordinatorUrl: is not a coordinator's URL/,
    ],
    [{ ...membership, certificatePin: 5 }, /certificatePin/],
    [[], /membership\.json: content/],
    ["x".repeat(70_000), /are more than it ever has/],
  ])("with unknown content is refused", (content, why) => {
    writeFileSync(membershipFile(home), JSON.stringify(content));

    expect(() => readMembership(home)).toThrow(why);
  });

  it("that a crash left half-written beside the whole one is ignored", () => {
    writeMembership(home, membership);
    writeFileSync(`${membershipFile(home)}.4711.new`, '{"coordinatorUrl":');

    expect(readMembership(home)).toEqual(membership);
  });
});

describe("settings of a folder with a membership", () => {
  it("need neither coordinator nor name nor key", () => {
    writeMembership(home, membership);

    const { coordinatorUrl, name, key } = crawlerConfig({ home });

    expect({ coordinatorUrl, name, key }).toEqual({
      coordinatorUrl: membership.coordinatorUrl,
      name: "athens-1",
      key: membership.key,
    });
  });

  it("that say something else than the membership are a fault, beside all other faults", () => {
    writeMembership(home, membership);

    const start = () => crawlerConfig({ home, name: "sparta", ipv6: "yes" });

    expect(start).toThrow(/name: is not what membership\.json of .* has: leave it out here/);
    expect(start).toThrow(/ipv6/);
  });
});

describe("an identity", () => {
  it("is made when it is first needed, readable by its owner only, and never changes", () => {
    const made = openIdentity(home);
    const again = openIdentity(home);

    expect(again.publicKey).toBe(made.publicKey);
    expect(modeOf(identityFile(home))).toBe(0o600);
    expect(readdirSync(home)).toEqual(["identity.json"]);
    expect(isSignedBy(made.publicKey, "a text", again.sign("a text"))).toBe(true);
    expect(isSignedBy(made.publicKey, "a text", made.sign(Buffer.from("a text")))).toBe(true);
  });

  it("moves with its folder to a rebuilt machine", () => {
    const { publicKey } = openIdentity(home);
    const moved = `${home}-moved`;
    renameSync(home, moved);

    expect(openIdentity(moved).publicKey).toBe(publicKey);

    renameSync(moved, home);
  });

  it.each([
    ["torn", (text: string) => text.slice(0, 30), /identity\.json: this is no whole JSON file/],
    ["with another's public key", otherPublicKey, /the two keys do not belong together/],
    ["without its private key", () => JSON.stringify({ publicKey: "A".repeat(43) }), /privateKey/],
  ])("that is %s is reported, and not replaced", (_name, damage, why) => {
    openIdentity(home);
    const damaged = damage(readFileSync(identityFile(home), "utf8"));
    writeFileSync(identityFile(home), damaged);

    expect(() => openIdentity(home)).toThrow(why);
    expect(readFileSync(identityFile(home), "utf8")).toBe(damaged);
  });

  function otherPublicKey(text: string): string {
    const elsewhere = temporaryFolder("nearcrawl-member-");
    const { publicKey } = openIdentity(elsewhere);
    rmSync(elsewhere, { recursive: true });
    return JSON.stringify({ ...JSON.parse(text), publicKey });
  }
});

describe("a member", () => {
  const challenge = "c".repeat(43);
  const connection = { challenge, binding: "b".repeat(43) };

  it("signs its hello with its identity, for this connection only", () => {
    writeMembership(home, { ...membership, ticket: "t".repeat(43) });
    const member = new Member(home, readMembership(home)!);

    const hello = member.sign(helloOf("amber"), connection);

    const { publicKey, signature, instanceId, ticket } = hello.identity!;
    const said = { name: "athens-1", spoolId: hello.spoolId, instanceId, ticket, binding: "b".repeat(43) };
    expect(hello).toMatchObject({ name: "athens-1", key: membership.key });
    expect(ticket).toBe("t".repeat(43));
    expect(isSignedBy(publicKey, helloText({ challenge, ...said }), signature)).toBe(true);
    expect(isSignedBy(publicKey, helloText({ challenge: "d".repeat(43), ...said }), signature)).toBe(false);
    for (const binding of ["d".repeat(43), null, undefined])
      expect(isSignedBy(publicKey, helloText({ challenge, ...said, binding }), signature)).toBe(false);
  });

  it("stores tickets and keys before they count", () => {
    writeMembership(home, membership);
    const member = openMember(home)!;

    member.welcomed({ ticket: "n".repeat(43) }, quietLog);
    const isKept = member.keepKey("another-key-0123456789", quietLog);

    expect(isKept).toBe(true);
    expect(readMembership(home)).toEqual({
      ...membership,
      ticket: "n".repeat(43),
      key: "another-key-0123456789",
    });
    expect(member.sign(helloOf("amber"), connection)).toMatchObject({ key: "another-key-0123456789" });
  });

  it.each([
    [59, []],
    [-59, []],
    [120, [120]],
    [-120, [-120]],
  ])("reports a clock that is %i s ahead: %o", (seconds, told) => {
    writeMembership(home, membership);
    const now = new Date("2026-11-22T12:00:00.000Z");
    const member = new Member(home, membership, () => new Date(now.getTime() + seconds * 1000));
    const warned: unknown[] = [];
    const warn = (fields: object) => void warned.push((fields as { secondsAhead: number }).secondsAhead);

    member.welcomed({ time: now.toISOString() }, { ...quietLog, warn });

    expect(warned).toEqual(told);
  });

  it("does not confirm a key that could not be stored", () => {
    writeMembership(home, membership);
    const member = openMember(home)!;
    rmSync(home, { recursive: true });

    const isKept = member.keepKey("another-key-0123456789", quietLog);

    expect(isKept).toBe(false);
    expect(member.sign(helloOf("amber"), connection).key).toBe(membership.key);
  });
});
