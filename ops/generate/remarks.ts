/**
 * What stands in objects beside the facts, and what a reader stumbles over: remarks, long ones with a
 * certificate in them (PEM, RFC 7468, as in APNIC's and RIPE's databases), continued lines, comment lines.
 */
import { draw } from "./path-random.ts";
import { townOf } from "./places.ts";
import { attribute } from "./rpsl-attributes.ts";

/** Comment lines in front of an object, now and then; an object never ends by them. */
export function commentBefore(path: number): string {
  const chance = draw(path, 90) & 0x3ff;
  if (chance === 0) return "# inetnum: 10.0.0.0 - 10.255.255.255 is not an object, this is a comment\n";
  return chance === 1 ? `% Tags relating to this object: ${draw(path, 91) % 100}\n` : "";
}

/** None for most objects; a certificate for about one in two thousand. */
export function remarksOf(path: number): string {
  const chance = draw(path, 92) & 0x7ff;
  if (chance === 0) return certificateRemarks(path);
  if (chance < 30) return continuedRemark(path);
  if (chance < 450) return abuseRemarks(path);
  return "";
}

/** The address of whoever uses the range, as further description. */
export function addressLines(path: number): string {
  const number = 1 + (draw(path, 93) % 400);
  const town = townOf(draw(path, 94));
  const street = attribute("descr", `${number} ${townOf(draw(path, 95))} Street`);
  return `${street}${attribute("descr", `${10_000 + (draw(path, 96) % 89_999)} ${town}`)}`;
}

const ruler = attribute("remarks", "-".repeat(46));

function abuseRemarks(path: number): string {
  const domain = `${townOf(draw(path, 97)).toLowerCase()}.example`;
  return `${ruler}${attribute("remarks", `Send abuse reports to abuse@${domain}`)}${ruler}`;
}

/** Continued by spaces, a tab and a plus sign (RFC 2622 section 2). */
function continuedRemark(path: number): string {
  const ticket = draw(path, 98) % 1_000_000;
  return `${attribute("remarks", `peering: see ticket ${ticket}`)}                inetnum: quoted within a remark\n\tcountry: ZZ\n+\n+               end of the quotation\n`;
}

const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function certificateRemarks(path: number): string {
  const lines = Array.from({ length: 18 }, (_, line) => base64Line(draw(path, 100 + line)));
  const body = ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----"];
  const isContinued = (draw(path, 99) & 1) === 0;
  if (!isContinued) return body.map((line) => attribute("remarks", line)).join("");
  return `${attribute("remarks", body[0] as string)}${body
    .slice(1)
    .map((line) => `                ${line}\n`)
    .join("")}`;
}

function base64Line(path: number): string {
  return Array.from({ length: 64 }, (_, at) => base64[draw(path, at) & 63]).join("");
}
