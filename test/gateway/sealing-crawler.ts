/** A crawler with an identity that seals whatever a test wants. */
import { generateKeyPairSync, sign } from "node:crypto";
import type { GatewayHandlers } from "#coordinator/run/gateway/gateway-settings";
import { type ChallengedConnection, helloText, sealText } from "#protocol/identity";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import { packResult } from "#protocol/packed/message-frames";
import { ResultDigest } from "#protocol/result";
import { admitted, helloOf, keyOf, knownNames } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

type Result = Extract<CrawlerMessage, { type: "crawler:result" }>;

export interface TestIdentity {
  readonly publicKey: string;
  sign(text: string): string;
}

export function testIdentity(): TestIdentity {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKey.export({ format: "jwk" }).x ?? "",
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64url"),
  };
}

/** As the gateway's handler: this crawler has this public key, the others have none. */
export function knownBy(name: (typeof knownNames)[number], publicKey: string): Partial<GatewayHandlers> {
  const numberOf = (given: string) => 1 + (knownNames as readonly string[]).indexOf(given);
  return {
    admit: async ({ hello }) => admitted(numberOf(hello.name), hello.name === name ? publicKey : null),
  };
}

const instanceId = "0b0e7cf4-58ab-4c83-9d0f-2b1a4d6f6a01";
const noChallenge = "A".repeat(43);

export function signedHello(
  name: string,
  { publicKey, sign: signText }: TestIdentity,
  {
    challenge = noChallenge,
    spoolId = helloOf(name).spoolId,
  }: Partial<ChallengedConnection> & { spoolId?: string } = {},
): CrawlerHello {
  const ticket = null;
  const signature = signText(helloText({ challenge, name, spoolId, instanceId, ticket }));
  const identity = { publicKey, signature, instanceId, ticket };
  return helloOf(name, { key: keyOf(name), spoolId, identity });
}

export class SealingCrawler {
  readonly raw: RawCrawler;
  readonly #identity: TestIdentity;
  readonly #spoolId: string;
  readonly #digest = new ResultDigest();

  /** Already welcomed, with this identity and spool. */
  constructor(raw: RawCrawler, identity: TestIdentity, spoolId: string = helloOf("").spoolId) {
    this.raw = raw;
    this.#identity = identity;
    this.#spoolId = spoolId;
  }

  static async arrive(url: string, name: string, identity: TestIdentity): Promise<SealingCrawler> {
    const raw = await RawCrawler.connect(url);
    const hello = signedHello(name, identity, raw.challenge === null ? {} : { challenge: raw.challenge });
    await raw.send(hello);
    await raw.next("coordinator:welcome");
    return new SealingCrawler(raw, identity, hello.spoolId);
  }

  async ship(...results: readonly Result[]): Promise<void> {
    for (const { sequence, leaseId, result } of results) {
      const { numbers, text } = this.raw.frames.result(sequence, packResult(leaseId, result));
      this.#digest.add({ numbers, text: Buffer.from(text) });
      await this.raw.sendText(text, numbers);
    }
  }

  async say(message: CrawlerMessage): Promise<void> {
    await this.raw.send(message);
  }

  /** Signs what was shipped since the previous seal, or something else. */
  async seal(
    first: number,
    last: number,
    { digest = this.#digest.take(), as = this.#identity }: { digest?: string; as?: TestIdentity } = {},
  ): Promise<void> {
    const signature = as.sign(sealText({ spoolId: this.#spoolId, first, last, digest }));
    await this.say({ type: "crawler:seal", first, last, signature });
  }
}
