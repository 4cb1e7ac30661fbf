/**
 * Encodes and decodes messages: JSON in UTF-8, validated against the schemas of messages.ts, so that other code can trust
 * their shape. Unknown fields are dropped, so that a newer peer may add some within a version. An unknown message type or a
 * missing field is an error, since it needs a new version. Errors name the message, the field and the problem, never a value,
 * which may be a key.
 */
import { z } from "zod";
import { ProtocolError } from "#core/errors";
import {
  agreeOnVersion,
  type CoordinatorMessage,
  coordinatorMessage,
  protocolVersions,
} from "./coordinator-messages.ts";
import {
  type CrawlerHello,
  type CrawlerMessage,
  crawlerHello,
  crawlerMessage,
  crawlerResult,
} from "./messages.ts";
import { type FrameReader, packResult, type ReceivedParts } from "./packed/message-frames.ts";
import type { PackedMessage } from "./packed/packed-message.ts";
import { boundStructure, parseStorable, storable, unpackMessage } from "./packed/unpack-message.ts";
import { type FetchResult, failedResult, fetchResultSchema } from "./result.ts";

/**
 * Maximum length of a message before compression. The longest `crawler:result` that the schema allows (2000 links of 2 KB and
 * 500,000 characters of text at 3 bytes each) is well below it.
 */
export const maxMessageBytes: number = 8 * 1024 * 1024;
/** Maximum length of a message from a peer that has not proven its key yet. A hello takes under 2 KB. */
export const maxHelloBytes: number = 64 * 1024;

/**
 * Maximum number of JSON values in a crawler's message, counted before it is parsed, because a few KB of deflate can hold
 * eight million brackets. The longest allowed result has 10,000 links of seven fields.
 */
const maxMessageValues = 150_000;
const maxMessageDepth = 16;

/** Throws ProtocolError when the text is longer than the peer accepts. */
export function encodeMessage(message: CrawlerMessage | CoordinatorMessage): string {
  const text = JSON.stringify(message);
  const bytes = text.length * 3 <= maxMessageBytes ? 0 : Buffer.byteLength(text);
  if (bytes > maxMessageBytes) {
    throw new ProtocolError(`${message.type}: ${bytes} bytes are over the limit of ${maxMessageBytes}`);
  }
  return text;
}

/**
 * Decodes a crawler's messages after its hello, in order (`reader` keeps what they refer to). Throws ProtocolError for
 * anything but a crawler's message. A bad result is replaced (`soundMessage`).
 */
export function decodePackedMessage(received: ReceivedParts, reader: FrameReader): CrawlerMessage {
  const { numbers, text } = received;
  return soundMessage(reader.message({ numbers, text: storable(decodeText(text)) }));
}

/**
 * A malformed result is replaced by a failure under its sequence and lease. Ending the session would not help, because the
 * crawler resends a result until it is acknowledged. A session ends only for faults in what later messages depend on: frames,
 * the deflate stream, link references, sequences, seals.
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
  /** Why a failure replaces it; null when the result is unchanged. */
  readonly fault: string | null;
}

/** Packs a result as a crawler stores and ships it. A result that the coordinator would refuse is turned into a failure here. */
export function packSoundly(leaseId: string, result: FetchResult): SoundResult {
  const packed = packResult(leaseId, result);
  const fault = resultFault(result) ?? lengthFault(packed);
  return fault === null
    ? { packed, fault }
    : { packed: packResult(leaseId, failedResult(result, fault)), fault };
}

/** Does the same for a result that some release packed earlier, by reading it as the coordinator does. */
export function soundly(leaseId: string, packed: PackedMessage): SoundResult {
  try {
    const { result } = packedResult.parse(unpackMessage(packed));
    const fault = resultFault(result) ?? lengthFault(packed);
    return fault === null
      ? { packed, fault }
      : { packed: packResult(leaseId, failedResult(result, fault)), fault };
  } catch (error) {
    // The URL is unknown, so the failure names a placeholder that no lease holds.
    const fault = (error as Error).message;
    return { packed: packResult("0", failedResult(null, fault)), fault };
  }
}

function resultFault(result: unknown): string | null {
  const checked = fetchResultSchema.safeParse(result);
  return checked.success ? null : firstFault(checked.error.issues);
}

/** Maximum number of bytes that a frame adds to an incompressible result. */
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

export function decodeCoordinatorMessage(received: Uint8Array | string): CoordinatorMessage {
  return check(coordinatorMessage, parse(received));
}

type DecodedHello =
  | { readonly type: "hello"; readonly version: number; readonly hello: CrawlerHello }
  | { readonly type: "wrong-version"; readonly reason: string };

/**
 * Decodes a crawler's first message; throws ProtocolError for any other. Versions are checked first, so that an incompatible
 * crawler is refused for its version rather than for some field.
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

/** The errors have no cause: JSON.parse quotes the text, which may hold a key. */
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

function typeOf(value: unknown): string {
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
  return typeof type === "string" && /^[a-z]{1,20}:[a-z-]{1,30}$/.test(type)
    ? type
    : "a message of no known type";
}
