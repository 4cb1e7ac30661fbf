/** Registry text for the parse benchmark: objects as the registries print them, the same bytes for the same seed. */
import { seededRandom } from "#core/random";

const random = seededRandom(20260);
const below = (limit: number) => Math.floor(random() * limit);
const chunkBytes = 2 ** 20;

/** Seven IPv4 ranges of ten objects, two IPv6, one organisation. */
export function rpslObject(): string {
  const kind = below(10);
  return kind < 7 ? inetnum() : kind < 9 ? inet6num() : organisation();
}

function inetnum(): string {
  const first = [45 + below(50), below(256), below(256)].join(".");
  const remarks = "remarks:        For abuse please write to abuse@example.net\n".repeat(below(4));
  return `inetnum:        ${first}.0 - ${first}.255\nnetname:        EX-NET-${below(1e6)}\ndescr:          Example Customer ${below(1e5)}\ndescr:          Street ${below(200)}, Town\ncountry:        ${["NL", "DE", "FR", "GB"][below(4)]}\n${below(3) > 0 ? "" : `org:            ORG-EX${below(1e5)}-RIPE\n`}admin-c:        DUMY-RIPE\ntech-c:         DUMY-RIPE\nstatus:         ASSIGNED PA\nmnt-by:         EX${below(1e4)}-MNT\n${remarks}${stamps}source:         RIPE\n\n`;
}

function inet6num(): string {
  const prefix = `2a${(16 + below(240)).toString(16)}:${below(65536).toString(16)}:${below(65536).toString(16)}`;
  return `inet6num:       ${prefix}::/48\nnetname:        EX6-NET-${below(1e6)}\ncountry:        NL\norg:            ORG-EX${below(1e5)}-RIPE\nadmin-c:        DUMY-RIPE\ntech-c:         DUMY-RIPE\nstatus:         ASSIGNED\nmnt-by:         EX${below(1e4)}-MNT\n${stamps}source:         RIPE\n\n`;
}

function organisation(): string {
  return `organisation:   ORG-EX${below(1e5)}-RIPE\norg-name:       Example Holdings ${below(1e5)} B.V.\ncountry:        NL\norg-type:       LIR\naddress:        Street ${below(200)}\naddress:        Town\nphone:          +31 20 1234567\nmnt-ref:        EX${below(1e4)}-MNT\nmnt-by:         EX${below(1e4)}-MNT\n${stamps}source:         RIPE\n\n`;
}

const stamps = "created:        2012-05-04T08:00:00Z\nlast-modified:  2021-02-03T10:11:12Z\n";

export const statisticsLine = (): string =>
  `ripencc|NL|ipv4|${45 + below(50)}.${below(256)}.${below(256)}.0|256|20120504|allocated|${below(1e9).toString(16)}-4d3a-9c1b\n`;

export function arinNet(): string {
  const octets = [45 + below(50), below(256), below(256)]
    .map((octet) => String(octet).padStart(3, "0"))
    .join(".");
  return `<net><endAddress>${octets}.255</endAddress><handle>NET-${below(1e9)}-1</handle><name>EXAMPLE-${below(1e5)}</name><netBlocks><netBlock><cidrLenth>24</cidrLenth><endAddress>${octets}.255</endAddress><startAddress>${octets}.000</startAddress><type>S</type></netBlock></netBlocks><pocLinks><pocLink type="T" function="AD" handle="EX${below(1e4)}-ARIN"/></pocLinks><orgHandle>EXAMP-${below(1e5)}</orgHandle><parentNetHandle>NET-45-0-0-0-0</parentNetHandle><registrationDate>2012-05-04T00:00:00-04:00</registrationDate><startAddress>${octets}.000</startAddress><updateDate>2012-05-04T00:00:00-04:00</updateDate><version>4</version></net>\n`;
}

/** About that many bytes of parts in a frame, in the pieces in which a file arrives. */
export function chunksOf(
  bytes: number,
  part: () => string,
  frame: readonly [before: string, after: string] = ["", ""],
): readonly Buffer[] {
  const parts = [frame[0]];
  for (let length = 0; length < bytes; ) {
    const next = part();
    parts.push(next);
    length += next.length;
  }
  const all = Buffer.from(parts.join("") + frame[1]);
  return Array.from({ length: Math.ceil(all.length / chunkBytes) }, (_, index) =>
    Buffer.from(all.subarray(index * chunkBytes, (index + 1) * chunkBytes)),
  );
}
