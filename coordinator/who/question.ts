/** What a question to `who` is about: a URL, a host, an address, a range, or a name of somebody. */

import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import { withoutUser } from "#core/ip/url-host";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { composed } from "#protocol/composed";

export type Question =
  /** Several keys when the scheme was left out; the first that the frontier knows is meant. */
  | { readonly type: "url"; readonly text: string; readonly keys: readonly [UrlKey, ...UrlKey[]] }
  | { readonly type: "address"; readonly text: string }
  | {
      readonly type: "range";
      readonly text: string;
      readonly first: string;
      readonly last: string;
    }
  /** Organisation or crawler; `host` is set when the text could be a host name as well. */
  | { readonly type: "name"; readonly text: string; readonly host: string | null }
  | { readonly type: "unreadable"; readonly text: string; readonly reason: string };

/** Longer questions are refused; the longest URL in the frontier has 2048 characters. */
export const maxQuestionLength = 2048;

const faultWords = {
  "not-a-url": "it cannot be parsed as a URL",
  "not-http": "only http and https are crawled",
  "too-long": "it is longer than 2048 characters",
  "no-host": "it names no host",
} as const;

/** Never throws: what cannot be read says why. */
export function readQuestion(input: string): Question {
  const text = input
    .slice(0, maxQuestionLength + 1)
    .replace(/\p{Cc}/gu, " ")
    .trim();
  if (text === "") return unreadable(text, "nothing was asked");
  if (text.length > maxQuestionLength) return unreadable(text.slice(0, 100), faultWords["too-long"]);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return urlQuestion(text, [text]);
  const located = addressQuestion(text) ?? rangeQuestion(text);
  if (located === null && addressForm.test(text))
    return unreadable(text, "it is no address and no range of addresses");
  return located ?? hostOrName(text);
}

/** Digits and dots, or hexadecimal digits with two colons, perhaps with a prefix length: meant as an address. */
const addressForm = /^([\d.]+|[\da-f]*:[\da-f]*:[\da-f:.]*)(\/\d*)?$/i;

function addressQuestion(text: string): Question | null {
  const address = parseAddress(text.replace(/^\[(.*)\]$/, "$1"));
  return address && { type: "address", text: formatAddress(unmapAddress(address)) };
}

function rangeQuestion(text: string): Question | null {
  const range = parseRange(text);
  if (!range) return null;
  if (isUnary(range)) return { type: "address", text: formatAddress(firstAddress(range)) };
  return {
    type: "range",
    text: formatRange(range),
    first: formatAddress(firstAddress(range)),
    last: formatAddress(lastAddress(range)),
  };
}

const hostForm =
  /^(?=.{1,253}\.?$)([\p{L}\p{N}_]([\p{L}\p{N}_-]{0,61}[\p{L}\p{N}_])?\.)+[\p{L}\p{N}-]{2,63}\.?$/u;

function hostOrName(written: string): Question {
  const text = composed(written);
  const [beforePath = ""] = text.split(/[/?#]/, 1);
  const hostPart = beforePath.replace(/:\d{1,5}$/, "");
  if (!hostForm.test(hostPart) && hostPart !== "localhost") return { type: "name", text, host: null };
  if (beforePath !== text || hostPart !== beforePath)
    return urlQuestion(text, [`https://${text}`, `http://${text}`]);
  const key = urlKeyOf(`http://${hostPart}/`);
  return { type: "name", text, host: typeof key === "string" ? null : key.host };
}

function urlQuestion(text: string, spellings: readonly string[]): Question {
  const keys = spellings.map(urlKeyOf);
  const [first, ...rest] = keys.filter((key): key is UrlKey => typeof key !== "string");
  if (first) return { type: "url", text: first.url, keys: [first, ...rest] };
  const fault = keys.find((key) => typeof key === "string");
  return unreadable(
    withoutUser(text),
    faultWords[(fault as keyof typeof faultWords | undefined) ?? "not-a-url"],
  );
}

function unreadable(text: string, reason: string): Question {
  return { type: "unreadable", text, reason };
}
