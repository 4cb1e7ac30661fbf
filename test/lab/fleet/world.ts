/**
 * Who and what is in the box, each by a number: crawlers and targets, all of them alone in a /20 of the public address
 * space, each /20 in one of 400 towns on the globe. Names, keys, addresses, places and round trips follow from the
 * numbers, so every process of the benchmark knows the same world without being told.
 */
import { createHash, createPrivateKey, type KeyObject, sign } from "node:crypto";
import { mix32, seededRandom } from "#core/random";

/** First addresses of the /20s: none of these is special-purpose. */
const crawlersFrom = 20 * 2 ** 24;
const targetsFrom = 30 * 2 ** 24;
export const blockBytes = 4096;

export function crawlerBlock(at: number): number {
  return crawlersFrom + at * blockBytes;
}

export function targetBlock(at: number): number {
  return targetsFrom + at * blockBytes;
}

export function addressText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

function addressNumber(text: string): number {
  return text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

const degreesOf = (radians: number) => (radians * 180) / Math.PI;
const radiansOf = (degrees: number) => (degrees * Math.PI) / 180;

const towns: readonly Place[] = (() => {
  const random = seededRandom(20);
  // Uniform on the sphere, but for the polar circles.
  return Array.from({ length: 400 }, () => ({
    latitude: degreesOf(Math.asin(1.8 * random() - 0.9)),
    longitude: 360 * random() - 180,
  }));
})();

/** Where what has this address is. */
export function placeOf(address: string): Place {
  const hash = mix32(Math.floor(addressNumber(address) / blockBytes));
  const town = towns[hash % towns.length]!;
  const aside = (shift: number) => (((hash >>> shift) & 255) / 255 - 0.5) * 1.5;
  const longitude = town.longitude + aside(16);
  return { latitude: town.latitude + aside(8), longitude: ((longitude + 540) % 360) - 180 };
}

/** Light in glass goes 100 km and back in 1 ms; cables and routers make the way 1.6 times as long, the last mile 2 ms. */
export function rttMs(from: Place, to: Place): number {
  const [a, b] = [radiansOf(from.latitude), radiansOf(to.latitude)];
  const between = radiansOf(to.longitude - from.longitude);
  const cosine = Math.sin(a) * Math.sin(b) + Math.cos(a) * Math.cos(b) * Math.cos(between);
  const km = 6371 * Math.acos(Math.min(1, Math.max(-1, cosine)));
  return 2 + (1.6 * km) / 100;
}

/** What a crawler has in its folder. The keys are nobody's else, and worth nothing outside the box. */
export interface Folder {
  readonly name: string;
  readonly key: string;
  readonly address: string;
  readonly place: Place;
}

export function folderOf(at: number): Folder {
  const address = addressText(crawlerBlock(at) + 1);
  return {
    name: `crawler-${at}`,
    key: `bench-${digestOf(`key ${at}`).toString("hex")}`,
    address,
    place: placeOf(address),
  };
}

/** In base64url, as the database has it. */
export function publicKeyOf(at: number): string {
  return privateKeyOf(at).export({ format: "jwk" }).x ?? "";
}

/** The key is made for each signature: ten thousand of them would be kept for nothing. */
export function signAs(at: number, text: string): string {
  return sign(null, Buffer.from(text), privateKeyOf(at)).toString("base64url");
}

/** Ed25519 from 32 bytes (RFC 8037), which takes a tenth of the time that PKCS #8 does; `x` must stand there and is reckoned anew. */
function privateKeyOf(at: number): KeyObject {
  const d = digestOf(`identity ${at}`).toString("base64url");
  return createPrivateKey({ key: { kty: "OKP", crv: "Ed25519", d, x: d }, format: "jwk" });
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(`fleet in a box: ${text}`).digest();
}
