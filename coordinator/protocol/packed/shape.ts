/**
 * Reads the shape of a packed message (its forms: packed-message.ts). It comes from the other side of the wire:
 * its length and depth are bounded, and inside a list only what takes a line for itself may stand, so that
 * the work of reading a message is bounded by its lines.
 */
import { ProtocolError } from "#core/errors";

export type Shape =
  | { readonly type: "form"; readonly form: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "list"; readonly of: Shape | null }
  | { readonly type: "object"; readonly fields: readonly (readonly [key: string, shape: Shape])[] };

const maxShapeCharacters = 8192;
const maxDepth = 8;
const forms = new Set("nTFsjuithdmDvL");
const listForms = new Set("sj");
const key = /[A-Za-z][A-Za-z0-9]{0,39}:/y;
const text = /"([^"\\]{0,24})"/y;

/** Throws ProtocolError. */
export function readShape(source: string): Shape {
  if (source.length > maxShapeCharacters) throw new ProtocolError("a packed message's shape is too long");
  const reader = new ShapeReader(source);
  const shape = reader.shape({ depth: 0, inList: false });
  reader.end();
  return shape;
}

interface Within {
  readonly depth: number;
  readonly inList: boolean;
}

class ShapeReader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  shape(within: Within): Shape {
    if (within.depth > maxDepth) throw new ProtocolError("a packed message is nested too deeply");
    if (this.#skip("{")) return this.#object({ ...within, depth: within.depth + 1 });
    if (this.#skip("[")) return this.#list({ depth: within.depth + 1, inList: true });
    if (this.#source[this.#at] === '"' && !within.inList) return { type: "text", text: this.#match(text) };
    const form = this.#source[this.#at++] ?? "";
    if (!(within.inList ? listForms : forms).has(form)) throw this.#fault();
    return { type: "form", form };
  }

  end(): void {
    if (this.#at !== this.#source.length) throw this.#fault();
  }

  #object(within: Within): Shape {
    const fields: [string, Shape][] = [];
    do {
      const name = this.#match(key).slice(0, -1);
      fields.push([name, this.shape(within)]);
    } while (this.#skip(","));
    if (!this.#skip("}")) throw this.#fault();
    return { type: "object", fields };
  }

  #list(within: Within): Shape {
    if (this.#skip("]")) return { type: "list", of: null };
    const of = this.shape(within);
    if (!this.#skip("]")) throw this.#fault();
    return { type: "list", of };
  }

  #skip(sign: string): boolean {
    if (this.#source[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source);
    if (!found) throw this.#fault();
    this.#at = pattern.lastIndex;
    return found[1] ?? found[0];
  }

  #fault(): ProtocolError {
    return new ProtocolError(`a packed message's shape makes no sense at character ${this.#at}`);
  }
}
