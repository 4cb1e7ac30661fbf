/**
 * Messages to text and back: JSON in UTF-8, checked against the schemas of messages.ts. What passes here is
 * trusted to have that shape. Fields that the schema does not know are dropped, so that a newer peer may add
 * some within a version; an unknown message type or a missing field is an error, since those need a new
 * version. Errors name the message, the field and the problem, never a value: it may be a key.
 */
import { z } from "zod";
import { ProtocolError } from "#core/errors";
import {
  agreeOnVersion,
  type CoordinatorMessage,
  coordinatorMessage,
  protocolVersions,
} from "./coordinator-messages.ts";
import { boundStructure, parseStorable, storable } from "./json-structure.ts";
import {
  type CrawlerHello,
  type CrawlerMessage,
  crawlerHello,
  crawlerMessage,
  crawlerResult,
} from "./messages.ts";
import { type FrameReader, packResult, type ReceivedParts } from "./packed/message-frames.ts";
import type { PackedMessage } from "./packed/packed-message.ts";
import { unpackMessage } from "./packed/unpack-message.ts";
import { type FetchResult, failedResult, fetchResultSchema } from "./result.ts";

/**
 * Longest message either side sends, before compression. The longest `crawler:result` that the schema
 * allows (2000 links of 2 KB and 900,000 characters of lexemes at 3 bytes each) is just below.
 */
export const maxMessageBytes: number = 8 * 1024 * 1024;
/** Longest message from a peer that has not shown its key yet. A hello takes under 2 KB. */
export const maxHelloBytes: number = 64 * 1024;

/**
 * What a crawler's message may be made of, told before it is built: a few KB of deflate are eight million
 * brackets, and the longest result that is allowed has 10,000 links of seven fields.
 */
const maxMessageValues = 150_000;
const maxMessageDepth = 16;

/** The text to send; throws ProtocolError when it is longer than the other side would take. */
export function encodeMessage(message: CrawlerMessage | CoordinatorMessage): string {
  const text = JSON.stringify(message);
  const bytes = text.length * 3 <= maxMessageBytes ? 0 : Buffer.byteLength(text);
  if (bytes > maxMessageBytes) {
    throw new ProtocolError(`${message.type}: ${bytes} bytes are over the limit of ${maxMessageBytes}`);
  }
  return text;
}

/**
 * What a crawler says after its hello, in the order in which it came (`reader` remembers what messages refer to). Throws
 * ProtocolError for anything but a message that a crawler may send; a bad result is none (`soundMessage`).
 */
export function decodePackedMessage(received: ReceivedParts, reader: FrameReader): CrawlerMessage {
  const { numbers, text } = received;
  return soundMessage(reader.message({ numbers, text: storable(decodeText(text)) }));
}

/**
 * One result that is not as it should be costs that result and not the session, which would end over it again and again: the
 * crawler sends it until it is acknowledged. A failure stands in its place, under its sequence and its lease. What ends a
 * session is what later messages depend on: frames, the deflate stream, the links that are referred to, sequences, seals.
 */
function soundMessage(value: unknown): CrawlerMessage {
  const checked = crawlerMessage.safeParse(value);
  if (checked.success) return checked.data;
  const fault = firstFault(checked.error.issues);
  const { data: envelope } = resultEnvelope.safeParse(value);
  if (envelope === undefined) throw new ProtocolError(`${typeOf(value)}: ${fault}`);
  return { ...envelope, result: failedResult(envelope.result, fault) };
}

const resultEnvelope = crawlerResult.extend({
  leaseId: crawlerResult.shape.leaseId.catch("0"),
  result: z.unknown(),
});

interface SoundResult {
  readonly packed: PackedMessage;
  /** Why a failure stands in its place; null: it is as it was. */
  readonly fault: string | null;
}

/** A result as a crawler keeps and ships it: one that the coordinator would not take becomes a failure of its URL here already. */
export function packSoundly(leaseId: string, result: FetchResult): SoundResult {
  const packed = packResult(leaseId, result);
  const fault = resultFault(result) ?? lengthFault(packed);
  return fault === null
    ? { packed, fault }
    : { packed: packResult(leaseId, failedResult(result, fault)), fault };
}

/** The same of one that was packed before, by whatever release: it is read as the coordinator reads it. */
export function soundly(leaseId: string, packed: PackedMessage): SoundResult {
  try {
    const { result } = packedResult.parse(unpackMessage(packed));
    const fault = resultFault(result) ?? lengthFault(packed);
    return fault === null
      ? { packed, fault }
      : { packed: packResult(leaseId, failedResult(result, fault)), fault };
  } catch (error) {
    // The URL is not known, and no lease holds the one that stands for it.
    const fault = (error as Error).message;
    return { packed: packResult("0", failedResult(null, fault)), fault };
  }
}

function resultFault(result: unknown): string | null {
  const checked = fetchResultSchema.safeParse(result);
  return checked.success ? null : firstFault(checked.error.issues);
}

/** What a frame may have beside a result of which hardly anything can be deflated. */
const frameBytes = 64 * 1024;

function lengthFault({ text, numbers, links }: PackedMessage): string | null {
  const lines = (links ?? []).reduce(
    (sum, link) => sum + Buffer.byteLength(link) + 1,
    Buffer.byteLength(text),
  );
  const [bytes, most] = [lines + numbers.length, maxMessageBytes - frameBytes];
  return bytes <= most ? null : `${bytes} bytes are over the limit of ${most}`;
}

const packedResult = z.looseObject({ result: z.unknown() });

/** Throws ProtocolError for anything but a message that the coordinator may send. */
export function decodeCoordinatorMessage(received: Uint8Array | string): CoordinatorMessage {
  return check(coordinatorMessage, parse(received));
}

type DecodedHello =
  | { readonly type: "hello"; readonly version: number; readonly hello: CrawlerHello }
  | { readonly type: "wrong-version"; readonly reason: string };

/**
 * A crawler's first message. The versions are looked at before anything else, so that a crawler of another
 * time is told so and not that some field of its hello is wrong. Throws ProtocolError for anything else.
 */
export function decodeHello(received: Uint8Array | string): DecodedHello {
  const text = typeof received === "string" ? received : decodeText(received);
  boundStructure(text, { values: maxMessageValues, depth: maxMessageDepth });
  const value = parse(text);
  const type = typeOf(value);
  if (type !== "crawler:hello") throw new ProtocolError(`${type}: the first message must be crawler:hello`);
  const { protocolVersions: offered } = check(crawlerHello.pick({ protocolVersions: true }), value);
  const version = agreeOnVersion(offered);
  if (version !== null) return { type: "hello", version, hello: check(crawlerHello, value) };
  const behind = Math.max(...offered) < Math.max(...protocolVersions) ? "crawler" : "coordinator";
  const reason = `the crawler speaks protocol ${offered.join(", ")}, the coordinator ${protocolVersions.join(", ")}: update the ${behind}`;
  return { type: "wrong-version", reason };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Neither error keeps its cause: JSON.parse quotes the text, and the text may hold a key. */
function parse(received: Uint8Array | string): unknown {
  const text = typeof received === "string" ? received : decodeText(received);
  try {
    return parseStorable(text);
  } catch {
    throw new ProtocolError(`a message of ${text.length} characters is not JSON`);
  }
}

function decodeText(received: Uint8Array): string {
  try {
    return utf8.decode(received);
  } catch {
    throw new ProtocolError("a message is not UTF-8");
  }
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  throw new ProtocolError(`${typeOf(value)}: ${firstFault(checked.error.issues)}`);
}

function firstFault(issues: readonly z.core.$ZodIssue[]): string {
  const [issue] = issues;
  if (!issue) return "it does not match the schema";
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return `${issue.path.join(".") || "message"}: ${issue.message.slice(0, 200)}${more}`;
}

/** The message's own word for what it is, if it is one that can be repeated. */
function typeOf(value: unknown): string {
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
  return typeof type === "string" && /^[a-z]{1,20}:[a-z-]{1,30}$/.test(type)
    ? type
    : "a message of no known type";
}
