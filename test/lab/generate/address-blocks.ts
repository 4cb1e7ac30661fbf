/**
 * The top of the address space as IANA gave it out (IPv4 Address Space; IPv6 Unicast Address Assignments):
 * which registry has which block, and in which of them objects are generated. Blocks with special-purpose
 * ranges inside are listed and left empty, so that nothing generated is dropped by accident.
 */
import type { Registry } from "#coordinator/subnets/subnet";

export type RegionalRegistry = Exclude<Registry, "iana">;

export const regionalRegistries = ["ripencc", "apnic", "arin", "lacnic", "afrinic"] as const;

/** A block that a registry hands out. Addresses within it are counted in `units`: IPv4 addresses, or IPv6 /64s. */
export interface AddressBlock {
  readonly registry: RegionalRegistry;
  readonly family: 4 | 6;
  /** IPv4: the first address. IPv6: the first 32 bits of the block. */
  readonly top: number;
  /** The block holds 2^bits units: 24 for an IPv4 /8, 52 for an IPv6 /12. */
  readonly bits: number;
}

/** First octets by registry: given out by IANA, and legacy space that the registry administers. */
export const ipv4Octets: Readonly<
  Record<RegionalRegistry, { readonly given: string; readonly legacy: string }>
> = {
  ripencc: {
    given: "2 5 31 37 46 62 77-95 109 176 178 185 193-195 212 213 217",
    legacy: "25 51 57 141 145 151 188",
  },
  apnic: {
    given: "1 14 27 36 39 42 49 58-61 101 103 106 110-126 175 180 182 183 202 203 210 211 218-223",
    legacy: "43 133 150 153 163 171",
  },
  arin: {
    given: "23 24 50 63-76 96-100 104 107 108 173 174 184 199 204-209 216",
    legacy:
      "3 4 6-8 11-13 15 16 18 20-22 26 28-30 32-35 38 40 44 45 47 48 52 54-56 128-132 134-140 142-144 146-149 152 155-162 164-170 172 192 198 214 215",
  },
  lacnic: { given: "177 179 181 186 187 189 190 200 201", legacy: "191" },
  afrinic: { given: "41 102 105 197", legacy: "154 196" },
};

/** Legacy /8s that were given to one company each, and the registry that administers them now. */
export const companyOctets: readonly (readonly [octet: number, registry: RegionalRegistry, name: string])[] =
  [
    [9, "arin", "Granite Harbour Machines Inc."],
    [17, "arin", "Orchard Valley Computers Inc."],
    [19, "arin", "Prairie Wheel Works Company"],
    [53, "ripencc", "Silberstern Motorenwerke AG"],
  ];

/** Kept free of the hierarchy: ranges that two registries' databases both hold lie in these (early registrations). */
export const sharedOctets: readonly number[] = [128, 129, 130, 131, 132];

/** With documentation, private or other special-purpose ranges inside (RFC 6890). */
const octetsWithSpecialRanges: ReadonlySet<number> = new Set([100, 169, 172, 192, 198, 203]);

/** The large IPv6 blocks of today, in which everything is generated. */
const ipv6Blocks: Readonly<Record<RegionalRegistry, readonly number[]>> = {
  ripencc: [0x2a00, 0x2a10],
  apnic: [0x2400, 0x2410],
  arin: [0x2600, 0x2630],
  lacnic: [0x2800],
  afrinic: [0x2c00],
};

/** The blocks of a registry in which objects are generated. */
export function blocksOf(registry: RegionalRegistry, family: 4 | 6): readonly AddressBlock[] {
  if (family === 6) {
    return ipv6Blocks[registry].map((hextet) => ({ registry, family, top: hextet * 0x10000, bits: 52 }));
  }
  const { given, legacy } = ipv4Octets[registry];
  return octetsOf(`${given} ${legacy}`)
    .filter((octet) => !octetsWithSpecialRanges.has(octet) && !sharedOctets.includes(octet))
    .map((octet) => ({ registry, family, top: octet * 2 ** 24, bits: 24 }));
}

/** `2 77-79` → 2, 77, 78, 79. */
export function octetsOf(text: string): readonly number[] {
  return text.split(" ").flatMap((part) => {
    const [first = Number.NaN, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
