/**
 * RPSL objects (RFC 2622, RFC 4012) as RIPE, APNIC, AFRINIC and LACNIC publish them, and ARIN's text dump,
 * which has the same shape with other attribute names. rpsl-scanner.ts finds the objects; here they become
 * networks and organisations. ` #` inside a value starts a comment.
 */
import type { Registry } from "#core/subnet/subnet";
import { LineCutter } from "./lines.ts";
import {
  countryCode,
  type HolderReference,
  maxTextLength,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";
import { type RpslObject, RpslScanner, type SlotName } from "./rpsl-scanner.ts";

export function openRpslReader(_file: string, sink: RecordSink): RecordReader {
  const scanner = new RpslScanner({
    object: (object) => readObject(sink, object),
    other: (className) => sink.ignore(`object class ${className.slice(0, 40)}`),
    malformed: (problem) => sink.malformed(problem),
  });
  const cutter = new LineCutter(scanner);
  return {
    push: (chunk) => cutter.push(chunk),
    end: () => {
      cutter.end();
      scanner.end();
    },
  };
}

function readObject(sink: RecordSink, object: RpslObject): void {
  if (object.className === "organisation") readOrganisation(sink, object, "org-name");
  else if (object.className === "orgid") readOrganisation(sink, object, "orgname");
  else readNetwork(sink, object);
}

function readNetwork(sink: RecordSink, object: RpslObject): void {
  const { className, line } = object;
  const isArin = className === "nethandle" || className === "v6nethandle";
  const text = object.text(isArin ? "netrange" : className) ?? "";
  const reading = readRegistryRange(text);
  if ("reason" in reading) {
    sink.malformed({ line, reason: reading.reason, value: text });
    return;
  }
  if (isArin && isOfAnotherRegistry(object.text("nettype"))) {
    sink.ignore("net type of another registry");
    return;
  }
  const registry = isArin ? "arin" : sourceOf(object);
  const country = countryCode(bare(object.text("country")));
  sink.record({
    type: "network",
    line,
    source: "whois",
    range: reading.range,
    registry,
    name: bare(object.text("netname")) ?? "",
    country,
    holder: holderOf(object, registry, country),
  });
}

/** ARIN's net types in words: `Allocated to RIPE NCC`, `Early Registrations, Transferred to APNIC`, `IANA …`. */
function isOfAnotherRegistry(netType: string | null): boolean {
  return netType !== null && /transferred|allocated to (?!arin)|iana/i.test(netType);
}

/** The organisation's handle; else LACNIC's owner; else the description. `mnt-by` is never a name. */
function holderOf(
  object: RpslObject,
  registry: Registry | null,
  country: string | null,
): HolderReference | null {
  const handle = bare(object.text("org") ?? object.text("ownerid") ?? object.text("orgid"));
  const owner = bare(object.text("owner"));
  if (handle !== null) return { type: "handle", handle: handle.toUpperCase(), registry, name: owner };
  const name = owner ?? bare(object.text("descr"));
  return name === null ? null : { type: "name", name, registry, country };
}

function readOrganisation(sink: RecordSink, object: RpslObject, nameSlot: SlotName): void {
  const { className, line } = object;
  const handle = bare(object.text(className));
  const name = bare(object.text(nameSlot));
  if (handle === null || name === null) {
    const reason =
      handle === null ? "an organisation without a handle" : `an organisation without ${nameSlot}`;
    sink.malformed({ line, reason, value: handle ?? "" });
    return;
  }
  const registry = className === "orgid" ? "arin" : sourceOf(object);
  const country = countryCode(bare(object.text("country")));
  sink.record({ type: "organisation", line, registry, handle: handle.toUpperCase(), name, country });
}

const sourceOf = (object: RpslObject) => registryNamed(bare(object.text("source")) ?? "");

/** A value without its trailing comment; null when nothing is left. */
function bare(value: string | null): string | null {
  if (value === null || value === "") return null;
  if (!value.includes("#")) return value.length > maxTextLength ? value.slice(0, maxTextLength) : value;
  const comment = value.startsWith("#") ? 0 : value.search(/[ \t]#/);
  const text = (comment < 0 ? value : value.slice(0, comment)).trim().slice(0, maxTextLength);
  return text === "" ? null : text;
}
