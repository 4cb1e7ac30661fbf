/**
 * One RPSL network as a record whose texts are made when they are asked for. There is one of these per reader: a
 * database has ten million networks, and whoever takes a record takes what it needs of it at once.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import type { IpRange } from "#core/ip/range";
import type { HolderReference, NetworkRecord } from "./record.ts";
import { slots } from "./rpsl-attributes.ts";
import type { RpslValues } from "./rpsl-values.ts";

export class RpslNetwork implements NetworkRecord {
  readonly type = "network";
  readonly source = "whois";
  line = 0;
  registry: Registry | null = null;
  ipv6Words: Uint32Array | null = null;
  readonly #values: RpslValues;
  #range: IpRange | (() => IpRange) = { family: 4, first: 0, last: 0 };
  #name: string | null = null;
  #country: string | null | undefined;
  #holder: HolderReference | null | undefined;

  constructor(values: RpslValues) {
    this.#values = values;
  }

  /** The record of the object whose values the scanner holds now. */
  begin(line: number, registry: Registry | null, range: IpRange | (() => IpRange)): void {
    this.line = line;
    this.registry = registry;
    this.ipv6Words = null;
    this.#range = range;
    this.#name = null;
    this.#country = undefined;
    this.#holder = undefined;
  }

  get range(): IpRange {
    if (typeof this.#range === "function") this.#range = this.#range();
    return this.#range;
  }

  get name(): string {
    this.#name ??= this.#values.bare(slots.netname) ?? "";
    return this.#name;
  }

  get country(): string | null {
    if (this.#country === undefined) this.#country = this.#values.country();
    return this.#country;
  }

  get holder(): HolderReference | null {
    if (this.#holder === undefined) this.#holder = this.#readHolder();
    return this.#holder;
  }

  /** The organisation's handle; else LACNIC's owner; else the description. `mnt-by` is never a name. */
  #readHolder(): HolderReference | null {
    const values = this.#values;
    const registry = this.registry;
    const handle = values.handle(slots.org) ?? values.handle(slots.ownerid) ?? values.handle(slots.orgid);
    const owner = values.bare(slots.owner);
    if (handle !== null) return { type: "handle", handle, registry, name: owner };
    const name = owner ?? values.bare(slots.descr);
    return name === null ? null : { type: "name", name, registry, country: this.country };
  }
}
