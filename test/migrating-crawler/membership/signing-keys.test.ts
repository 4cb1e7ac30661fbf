/** A crawler's signing keys on disk and according to the coordinator; the test controls time. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { type CrawlerLog, quietLog } from "#crawler/core/log";
import { Introduction } from "#crawler/fetch/sign-request";
import { type Identity, openIdentity } from "#crawler/membership/identity";
import { SigningKeys, signingKeysFile } from "#crawler/membership/signing-keys";
import { isSignedBy, keyThumbprint } from "#protocol/identity";
import { type SigningKeyAnnouncement, type SigningKeyAnswer, signingKeyText } from "#protocol/signing-key";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const dayMs = 86_400_000;

interface Surroundings {
  readonly log?: CrawlerLog;
  readonly clock?: { now: Date };
}

function crawlerIn(
  home = temporaryFolder("nearcrawl-signing-"),
  { log = quietLog, clock = { now: new Date("2026-03-01T12:00:00Z") } }: Surroundings = {},
) {
  const identity = openIdentity(home);
  const sent: SigningKeyAnnouncement[] = [];
  const now = () => clock.now;
  const keys = new SigningKeys({ home, identity, log, send: (one) => sent.push(one), now });
  const pass = (ms: number) => {
    clock.now = new Date(clock.now.getTime() + ms);
  };
  /** The answer of a coordinator that publishes the key. */
  const publish = (publicKey: string, useInSeconds = 300, days = 37) =>
    keys.onAnswer({
      ...{ type: "coordinator:signing-key", publicKey, refusal: null, reason: "" },
      published: { useInSeconds, expiresAt: new Date(clock.now.getTime() + days * dayMs).toISOString() },
    });
  const refuse = (publicKey: string, refusal: SigningKeyAnswer["refusal"]) =>
    keys.onAnswer({
      ...{ type: "coordinator:signing-key", publicKey, published: null, refusal, reason: `${refusal}` },
    });
  return { home, identity, keys, sent, clock, pass, publish, refuse };
}

const last = <T>(list: readonly T[]): T => list.at(-1)!;

describe("a crawler's signing key", () => {
  it("is made at the first welcome that wants one, readable by its owner only, and signed by both keys", () => {
    const { keys, sent, identity, home } = crawlerIn();
    keys.onWelcome(false);
    const before = existsSync(signingKeysFile(home));

    keys.onWelcome(true);

    const { publicKey, at, signature, possession } = last(sent);
    const text = signingKeyText({ identity: identity.publicKey, publicKey, at });
    expect(before).toBe(false);
    expect(publicKey).not.toBe(identity.publicKey);
    expect(isSignedBy(identity.publicKey, text, signature)).toBe(true);
    expect(isSignedBy(publicKey, text, possession)).toBe(true);
    expect(statSync(signingKeysFile(home)).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(signingKeysFile(home))).mode & 0o777).toBe(0o700);
  });

  it("signs nothing until copies of the key set have it, and nothing after its end", () => {
    const { keys, sent, pass, publish } = crawlerIn();
    keys.onWelcome(true);
    const { publicKey } = last(sent);

    const unanswered = keys.current;
    publish(publicKey, 300, 1);
    const tooSoon = keys.current;
    pass(300_000);
    const inUse = keys.current;
    pass(dayMs);
    const ended = keys.current;

    expect([unanswered, tooSoon, ended]).toEqual([null, null, null]);
    expect(inUse?.publicKey).toBe(publicKey);
  });

  it("survives a restart, and is announced with each welcome, because a coordinator may have lost it", () => {
    const first = crawlerIn();
    first.keys.onWelcome(true);
    first.publish(last(first.sent).publicKey, 0);
    const inUse = first.keys.current?.publicKey;

    const second = crawlerIn(first.home);
    second.keys.onWelcome(true);
    const untilAnswered = second.keys.current;
    second.publish(last(second.sent).publicKey, 0);

    expect(last(second.sent).publicKey).toBe(inUse);
    expect(untilAnswered).toBeNull();
    expect(second.keys.current?.publicKey).toBe(inUse);
  });

  it("is replaced only when the next one may be used, and both are announced until then", () => {
    const { keys, sent, pass, publish, refuse, home } = crawlerIn();
    keys.onWelcome(true);
    const old = last(sent).publicKey;
    publish(old, 0);

    keys.renew();
    const next = last(sent).publicKey;
    const announced = keys.current?.publicKey;
    publish(next, 300);
    pass(299_000);
    const almost = keys.current?.publicKey;
    keys.renew();
    pass(1000);
    const after = keys.current?.publicKey;
    sent.length = 0;
    keys.onWelcome(true);
    const both = sent.map(({ publicKey }) => publicKey);
    const unanswered = keys.current;
    refuse(old, "ended");
    publish(next, 0);
    const restarted = crawlerIn(home);
    restarted.keys.onWelcome(true);

    expect([announced, almost, after]).toEqual([old, old, next]);
    expect(both).toEqual([old, next]);
    expect(unanswered).toBeNull();
    expect(keys.current?.publicKey).toBe(next);
    expect(restarted.sent.map(({ publicKey }) => publicKey)).toEqual([next]);
  });

  it("is replaced when the coordinator says that it belongs to another crawler, but not without end", () => {
    const { keys, sent, refuse } = crawlerIn();
    keys.onWelcome(true);

    for (let refused = 0; refused < 20; refused++) refuse(last(sent).publicKey, "taken");

    expect(new Set(sent.map(({ publicKey }) => publicKey)).size).toBe(6);
    expect(keys.current).toBeNull();
  });

  it("that was refused because of the clock, or not answered, is announced again later", () => {
    const warnings: string[] = [];
    const log: CrawlerLog = { ...quietLog, warn: (fields) => warnings.push(JSON.stringify(fields)) };
    const { keys, sent, pass, refuse } = crawlerIn(undefined, { log });
    keys.onWelcome(true);
    refuse(last(sent).publicKey, "clock");

    keys.review();
    for (let asked = 0; asked < 100; asked++) keys.renew();
    const atOnce = sent.length;
    keys.renew();
    pass(600_000);
    keys.review();
    refuse(last(sent).publicKey, "clock");

    expect([atOnce, sent.length]).toEqual([1, 2]);
    expect(new Set(sent.map(({ publicKey }) => publicKey)).size).toBe(1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("clock");
  });

  it.each([
    ["torn", (text: string) => text.slice(0, 40)],
    ["of another identity", (text: string) => text.replace(/"identity": "[^"]{4}/, '"identity": "AAAA')],
    [
      "two halves that do not belong together",
      (text: string) => text.replace(/"privateKey": "[^"]{4}/, '"privateKey": "AAAA'),
    ],
  ])("is made again when its file is %s", (_how, damage) => {
    const first = crawlerIn();
    first.keys.onWelcome(true);
    const path = signingKeysFile(first.home);
    writeFileSync(path, damage(readFileSync(path, "utf8")));

    const second = crawlerIn(first.home);
    second.keys.onWelcome(true);

    expect(second.sent).toHaveLength(1);
    expect(second.sent[0]?.publicKey).not.toBe(first.sent[0]?.publicKey);
  });

  it("is not announced when it cannot be stored, because it could get lost", () => {
    const errors: string[] = [];
    const log: CrawlerLog = { ...quietLog, error: (_fields, message) => errors.push(message) };
    const { keys, sent, home } = crawlerIn(undefined, { log });
    // A file takes the place of the folder.
    writeFileSync(dirname(signingKeysFile(home)), "");

    keys.onWelcome(true);

    expect(sent).toEqual([]);
    expect(keys.current).toBeNull();
    expect(errors).toEqual(["a signing key cannot be kept, so it is not used"]);
  });
});

describe("requests to sites", () => {
  const signatureAgent = "https://crawl.example.org/.well-known/http-message-signatures-directory";
  const userAgent = "Nearcrawl/0.2 (+https://crawl.example.org/about-crawler)";
  const keyIdAt = (introduction: Introduction) =>
    /keyid="([^"]+)"/.exec(introduction.sign(new URL("https://site.example/"))["signature-input"] ?? "")?.[1];
  const introductionOf = ({ identity, keys }: { identity: Identity; keys: SigningKeys }) =>
    new Introduction(identity, keys);

  it("are signed with the identity when an older coordinator publishes nothing else", () => {
    const crawler = crawlerIn(undefined, { clock: { now: new Date() } });
    const introduction = introductionOf(crawler);

    introduction.onWelcome({ userAgent, signatureAgent });
    crawler.keys.onWelcome(false);

    expect(keyIdAt(introduction)).toBe(keyThumbprint(crawler.identity.publicKey));
    expect(crawler.sent).toEqual([]);
  });

  it("are signed with the signing key only, once the coordinator supports it, and not before", () => {
    const crawler = crawlerIn(undefined, { clock: { now: new Date() } });
    const introduction = introductionOf(crawler);
    introduction.onWelcome({ userAgent, signatureAgent, signingKeys: true });
    crawler.keys.onWelcome(true);
    const { publicKey } = last(crawler.sent);

    const before = keyIdAt(introduction);
    crawler.publish(publicKey, 0);

    expect(before).toBeUndefined();
    expect(keyIdAt(introduction)).toBe(keyThumbprint(publicKey));
  });
});
