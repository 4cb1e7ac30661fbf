/**
 * The benchmark's pages: about 40 KB of HTML with 101 links. `typical` has what pages of that size on the web
 * have (medians of 89 real ones between 20 and 80 KB, per 40 KB: 675 words, 385 tags, an eighth of it text; the
 * rest attributes, scripts, styles and drawings), with more links; `wordy` is nothing but text and its markup.
 */
import { seededRandom } from "#core/random";
import { capital, sentences, textLanguages, wordSource } from "./page-text.ts";

const pageBytes = 40_000;
const links = 101;

interface BenchPages {
  readonly typical: readonly string[];
  /** The same pages without a stated language: whoever wants to know has to detect it. */
  readonly undeclared: readonly string[];
  readonly wordy: readonly string[];
}

/** `count` different pages of each kind: half of them English, the others German, French and Spanish. */
export function benchPages(count: number): BenchPages {
  const random = seededRandom(42);
  const writers = textLanguages.map((language) => ({
    code: language.code,
    writer: new Writer(wordSource(language, random), random),
  }));
  const each = <Made>(make: (writer: Writer, index: number, code: string) => Made): Made[] =>
    Array.from({ length: count }, (_, index) => {
      const { code, writer } = writers[index % 6 < 3 ? 0 : (index % 6) - 2]!;
      return make(writer, index, code);
    });
  const typical = each((writer, index, code) => ({ code, rest: typicalPage(writer, index) }));
  return {
    typical: typical.map(({ code, rest }) => `<!doctype html><html lang="${code}">${rest}`),
    undeclared: typical.map(({ rest }) => `<!doctype html><html>${rest}`),
    wordy: each((writer, index, code) => `<!doctype html><html lang="${code}">${wordyPage(writer, index)}`),
  };
}

class Writer {
  readonly word: () => string;
  readonly random: () => number;

  constructor(word: () => string, random: () => number) {
    this.word = word;
    this.random = random;
  }

  phrase(words: number): string {
    return capital(Array.from({ length: words }, this.word).join(" "));
  }

  sentences(words: number): string {
    return sentences(this.word, words, this.random);
  }

  digits(count: number): string {
    return String(Math.floor(this.random() * 10 ** count)).padStart(count, "0");
  }
}

function typicalPage(writer: Writer, index: number): string {
  const menu = Array.from({ length: links }, (_, link) => menuItem(writer, index * links + link));
  const parts = [
    `<head><meta charset="utf-8"><title>${writer.phrase(6)}</title><meta name="description" content="${writer.sentences(18)}"><link rel="canonical" href="/p/${index}"><meta name="viewport" content="width=device-width, initial-scale=1"><meta property="og:type" content="article">`,
    `<style>${rules(writer, 60)}</style><script>window.settings={${settings(writer, 70)}};</script></head>`,
    `<body class="page page-${index}"><header><nav class="navigation" aria-label="${writer.phrase(2)}"><ul>${menu.join("\n")}</ul></nav></header><main><h1 class="title">${writer.phrase(6)}</h1>`,
  ];
  const foot = `<script>${"(function(w,d,s){w[s]=w[s]||[];d.addEventListener('click',function(e){w[s].push(e.target.id)})})(window,document,'clicks');".repeat(8)}</script></main></body></html>`;
  let bytes = foot.length + parts.join("\n").length;
  for (let section = 0; section < 12; section++) {
    const text = typicalSection(writer, section);
    parts.push(text);
    bytes += text.length + 1;
  }
  parts.push(`<!-- ${"rendered by the site's own templates; ".repeat(2)}-->`);
  if (bytes < pageBytes)
    parts.push(`<svg viewBox="0 0 800 600"><path d="${drawing(writer, pageBytes - bytes)}"/></svg>`);
  return `${parts.join("\n")}${foot}`;
}

function menuItem(writer: Writer, number: number): string {
  return `<li id="item-${number}" class="menu-item menu-item-type-page menu-item-${number}"><a class="menu-link" href="/p/${number}"><span class="label">${writer.phrase(3)}</span></a></li>`;
}

/** A heading, a paragraph and a picture inside the wrappers that pages have. */
function typicalSection(writer: Writer, section: number): string {
  const mark = writer.digits(6);
  return `<section id="part-${mark}" class="content section section-${section} layout-two-thirds" data-track="view:${mark}"><div class="wrap wrap--wide"><div class="inner" style="margin:0 auto;max-width:72rem"><h2 class="headline headline--large">${writer.phrase(5)}</h2><div class="text" role="article"><p class="paragraph paragraph--first">${writer.sentences(22)} <em class="mark">${writer.word()} ${writer.word()}</em> ${writer.sentences(12)}</p></div><figure><img src="/pictures/${mark}.jpg" width="640" height="480" loading="lazy" alt="${writer.phrase(2)}" srcset="/pictures/${mark}-2x.jpg 2x, /pictures/${mark}-3x.jpg 3x"></figure></div></div></section>`;
}

function wordyPage(writer: Writer, index: number): string {
  const parts = [
    `<head><meta charset="utf-8"><title>${writer.phrase(6)}</title><meta name="description" content="${writer.sentences(18)}"></head><body>`,
  ];
  for (let link = 0; link < links; link++)
    parts.push(`<li><a href="/t/${index * links + link}">${writer.phrase(3)}</a></li>`);
  let bytes = parts.join("\n").length;
  while (bytes < pageBytes) {
    const mark = writer.digits(6);
    const section = `<section id="part-${mark}" class="content section section-${mark} layout-two-thirds"><h2 class="headline headline--large" style="margin:0 auto">${writer.phrase(5)}</h2><p class="paragraph paragraph--first">${writer.sentences(30)} <em class="mark">${writer.phrase(2)}</em> ${writer.sentences(12)}</p><img src="/pictures/${mark}.jpg" width="640" height="480" loading="lazy" alt=""></section>`;
    parts.push(section);
    bytes += section.length + 1;
  }
  return `${parts.join("\n")}</body></html>`;
}

function rules(writer: Writer, count: number): string {
  const rule = () => `.part-${writer.digits(4)}{margin:0 ${writer.digits(2)}px;color:#${writer.digits(6)}}`;
  return Array.from({ length: count }, rule).join("");
}

function settings(writer: Writer, count: number): string {
  const setting = () => `"option_${writer.digits(3)}":{"value":${writer.digits(4)},"enabled":true}`;
  return Array.from({ length: count }, setting).join(",");
}

function drawing(writer: Writer, characters: number): string {
  let path = "M0 0";
  while (path.length < characters) path += `L${writer.digits(3)} ${writer.digits(3)}`;
  return path;
}
