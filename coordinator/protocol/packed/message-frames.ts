/**
 * What a crawler sends after the welcome. A frame is
 *
 *   length of the numbers (LEB128) | numbers | texts, as a message of the deflate stream
 *
 * Numbers do not go through deflate, because they have no repetitions and would spoil the codes of the texts. A result is
 * sent as it was packed for the spool (packed-message.ts), except that its links are shortened by what this session has seen,
 * and its numbers begin with the difference of its sequence from the previous one. All state belongs to the session.
 */
import { ProtocolError } from "#core/errors";
import { failedResult } from "../result.ts";
import { LinkHistory } from "./links.ts";
import { NumberReader, NumberWriter } from "./numbers.ts";
import { type PackedMessage, packMessage } from "./packed-message.ts";
import { maxLines, unpackMessage } from "./unpack-message.ts";

interface MessageParts {
  readonly numbers: Buffer;
  readonly text: string;
}

/** A message's parts on arrival, whose text is unchecked UTF-8. */
export interface ReceivedParts {
  readonly numbers: Buffer;
  readonly text: Buffer;
}

/** Joins a frame; `deflated` is the compressed text. */
export function joinFrame(numbers: Buffer, deflated: Buffer): Buffer {
  const length = new NumberWriter();
  length.number(numbers.length);
  return Buffer.concat([length.finish(), numbers, deflated]);
}

/** Throws ProtocolError when the frame is shorter than stated. */
export function splitFrame(frame: Buffer): { readonly numbers: Buffer; readonly deflated: Buffer } {
  const reader = new NumberReader(frame);
  const numbers = reader.bytes(reader.number());
  return { numbers, deflated: reader.rest() };
}

export function packResult<Result extends { readonly url: string }>(
  leaseId: string,
  result: Result,
): PackedMessage {
  return packMessage({ leaseId, result }, originOf(result.url));
}

export class FrameWriter {
  readonly #history = new LinkHistory();
  #sequence = 0;

  /** Returns the parts of a result's frame. They must be sent in the order of the calls. */
  result(sequence: number, packed: PackedMessage): MessageParts {
    const numbers = new NumberWriter();
    numbers.number(sequence - this.#sequence);
    this.#sequence = sequence;
    return this.#parts(numbers, packed);
  }

  message(message: object): MessageParts {
    const numbers = new NumberWriter();
    numbers.number(0);
    return this.#parts(numbers, packMessage(message, ""));
  }

  #parts(numbers: NumberWriter, { text, numbers: own, links }: PackedMessage): MessageParts {
    numbers.number(links === null ? 0 : links.length + 1);
    const fresh = links === null ? [] : this.#shorten(numbers, originLine(text), links);
    numbers.bytes(own);
    return { numbers: numbers.finish(), text: [text, ...fresh].join("\n") };
  }

  #shorten(numbers: NumberWriter, origin: string, links: readonly string[]): string[] {
    const places = new NumberWriter();
    const fresh = this.#history.shorten(origin, links, places);
    numbers.number(fresh.length);
    numbers.bytes(places.finish());
    return fresh;
  }
}

export class FrameReader {
  readonly #history = new LinkHistory();
  #sequence = 0;

  /**
   * Returns the unchecked message. Throws ProtocolError when the ends may no longer share the same history, which ends the
   * session. If only a result's own content is unreadable, only that result is lost.
   */
  message({ numbers: bytes, text }: MessageParts): unknown {
    const numbers = new NumberReader(bytes);
    const step = numbers.number();
    const linkCount = numbers.number() - 1;
    const packed = this.#withLinks(text, linkCount, numbers);
    if (step === 0) return unpackMessage(packed);
    this.#sequence += step;
    return { type: "crawler:result", sequence: this.#sequence, ...unpackResult(packed) };
  }

  /** The lines of new links come last in the text. */
  #withLinks(text: string, count: number, numbers: NumberReader): PackedMessage {
    if (count < 0) return { text, numbers: numbers.rest(), links: null };
    const lines = text.split("\n", maxLines + 1);
    const freshCount = numbers.number();
    if (freshCount > lines.length) throw new ProtocolError("a packed message has too few lines");
    const fresh = lines.splice(lines.length - freshCount);
    let taken = 0;
    const links = this.#history.restore(lines[0] ?? "", count, numbers, () => {
      const line = fresh[taken++];
      if (line === undefined) throw new ProtocolError("packed links do not add up");
      return line;
    });
    if (taken !== freshCount) throw new ProtocolError("packed links do not add up");
    return { text: lines.join("\n"), numbers: numbers.rest(), links };
  }
}

/** The URL and lease of a result that cannot be unpacked are unknown, so the URL returns when the lease ends. */
function unpackResult(packed: PackedMessage): object {
  try {
    return unpackMessage(packed) as object;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { leaseId: "0", result: failedResult(null, error.message) };
  }
}

function originLine(text: string): string {
  return text.slice(0, text.indexOf("\n"));
}

function originOf(url: string): string {
  return /^https?:\/\/[^/\s]{1,280}(?=\/)/.exec(url)?.[0] ?? "";
}
