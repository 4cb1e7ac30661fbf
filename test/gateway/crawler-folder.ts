/** A crawler's folder (identity, key, ticket), with processes that run from it or a copy over a raw connection. */
import { randomUUID } from "node:crypto";
import type { ClientOptions } from "ws";
import type { CoordinatorRefuse, CoordinatorWelcome } from "#protocol/coordinator-messages";
import { helloText } from "#protocol/identity";
import type { CrawlerHello } from "#protocol/messages";
import { helloOf } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";
import { type TestIdentity, testIdentity } from "./sealing-crawler.ts";

export interface CrawlerFolder {
  readonly name: string;
  readonly identity: TestIdentity;
  key: string;
  ticket: string | null;
}

/** As after `join` with an invitation's secret or a stored key. */
export function folderOf(name: string, key: string, identity: TestIdentity = testIdentity()): CrawlerFolder {
  return { name, identity, key, ticket: null };
}

/** What a hello from this folder says on a connection with this challenge. */
export function helloFrom(
  { name, identity, key, ticket }: CrawlerFolder,
  {
    challenge,
    instanceId,
    binding,
  }: {
    readonly challenge: string;
    readonly instanceId: string;
    /** Absent: as in crawlers before 0.2.0. */
    readonly binding?: string | null;
  },
): CrawlerHello {
  const plain = helloOf(name, { key });
  const text = helloText({ challenge, name, spoolId: plain.spoolId, instanceId, ticket, binding });
  const { publicKey } = identity;
  const signature = identity.sign(text);
  return { ...plain, identity: { publicKey, signature, instanceId, ticket, binding } };
}

export interface Came {
  readonly crawler: RawCrawler;
  readonly welcome: CoordinatorWelcome | null;
  readonly refuse: CoordinatorRefuse | null;
  /** Null when the connection closed without one. */
  readonly refused: Promise<CoordinatorRefuse | null>;
  keyKept(): Promise<void>;
}

/** A process runs from the folder and stores the ticket of its welcome, unless `forgetful`. */
export async function comeFrom(
  folder: CrawlerFolder,
  url: string,
  how: {
    readonly instanceId?: string;
    readonly forgetful?: boolean;
    readonly options?: ClientOptions;
    readonly change?: (hello: CrawlerHello) => CrawlerHello;
  } = {},
): Promise<Came> {
  const { instanceId = randomUUID(), forgetful = false, options = {}, change = (hello) => hello } = how;
  const crawler = await RawCrawler.connect(url, options);
  const { binding } = crawler;
  await crawler.send(change(helloFrom(folder, { challenge: crawler.challenge ?? "", instanceId, binding })));
  const refused = crawler.next("coordinator:refuse").catch(() => null);
  const answer = await Promise.race([crawler.next("coordinator:welcome").catch(() => null), refused]);
  const welcome = answer?.type === "coordinator:welcome" ? answer : null;
  const refuse = answer?.type === "coordinator:refuse" ? answer : null;
  if (welcome?.ticket !== undefined && !forgetful) folder.ticket = welcome.ticket;
  return {
    crawler,
    welcome,
    refuse,
    refused,
    keyKept: async () => await crawler.send({ type: "crawler:key-kept" }),
  };
}
