/** A page's own text, on pages of many kinds of templates. */
import { describe, expect, it } from "vitest";
import { pageText } from "#crawler/extract/extract-page";
import { readOf } from "../support/extracted.ts";

const textOf = async (html: string) => {
  const { text, unquoted } = pageText(await readOf(html));
  return `${text}\n${unquoted}`.trim();
};

const times = (count: number, make: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => make(n)).join("");

/** Links of menus, archives and teaser lists in elements without meaning. */
const links = (count: number, word: string) =>
  `<div>${times(count, (n) => `<div><a href=/${word}/${n}>${word} ${n}</a></div>`)}</div>`;

const teasers = (count: number) =>
  `<div>${times(
    count,
    (n) => `<div><a href=/t/${n}><h3>Teaser ${n}</h3>
  <img src=t.jpg alt="picture of teaser ${n}"> words that lead elsewhere</a></div>`,
  )}</div>`;

const sentence = {
  en: "The harbour master closed the northern pier on Tuesday, since the storm had loosened three of its piles. ",
  de: "Der Hafenmeister hat am Dienstag den Nordsteg gesperrt, weil der Sturm drei der Pfähle gelockert hatte. ",
  ja: "港湾局は火曜日、嵐で杭が三本緩んだため、北側の桟橋を閉鎖したと発表した。",
  ar: "أغلق مدير الميناء الرصيف الشمالي يوم الثلاثاء، بعد أن خلخلت العاصفة ثلاثة من أعمدته الخشبية القديمة. ",
};

interface Template {
  readonly name: string;
  readonly html: string;
  readonly own: readonly string[];
  readonly rest: readonly string[];
}

const templates: readonly Template[] = [
  {
    name: "a short German report under a large menu, with more comments than text",
    html: `<html lang=de><head><meta property=og:type content=article><body>${links(150, "Ressort")}
      <div class=inhalt><h1>Nordsteg gesperrt</h1><p class=byline>Von Anna Berg</p><p>${sentence.de}Fähren legen im Süden an.</p></div>
      <section class=comments>${times(20, (n) => `<div><b>Leser ${n}</b><p>Kommentar: ${sentence.de.repeat(2)}</p></div>`)}</section>
      ${teasers(20)}<div>Impressum, Datenschutz und alle Rechte vorbehalten, auch die der Wiedergabe in Auszügen.</div>`,
    own: ["Nordsteg gesperrt", "legen im Süden an"],
    rest: ["Ressort", "Kommentar:", "Teaser", "picture of teaser", "Rechte vorbehalten"],
  },
  {
    name: "a short Japanese report among lists of links",
    html: `<html lang=ja><head><script type=application/ld+json>{"@type":"NewsArticle","headline":"桟橋"}</script>
      <body>${links(120, "社会")}
      <div><h1>北側の桟橋を閉鎖</h1><div>2026/11/20 05:00</div><div><p>${sentence.ja}</p></div></div>${links(120, "経済")}${teasers(15)}`,
    own: ["北側の桟橋を閉鎖", "港湾局は火曜日"],
    rest: ["社会 7", "経済 7", "Teaser"],
  },
  {
    name: "an Arabic article with a caption and articles beside it",
    html: `<html lang=ar dir=rtl><body>${links(40, "قسم")}<article><h1>إغلاق الرصيف</h1><figure><img src=a.jpg alt="صورة الرصيف"></figure>
      <p>${sentence.ar.repeat(2)}</p><p>${sentence.ar}وتستأنف العبارات رحلاتها غدا.</p></article>
      <aside><h2>اقرأ أيضا</h2><p>${sentence.ar}إعلان جانبي طويل.</p></aside>`,
    own: ["إغلاق الرصيف", "وتستأنف العبارات", "صورة الرصيف"],
    rest: ["قسم 3", "إعلان جانبي"],
  },
  {
    name: "a page that React streams: hidden parts that a script moves into place",
    html: `<body><header>${links(12, "Section")}</header><div><main><!--$?--><template id="B:0"></template><p>Loading…</p><!--/$--></main>
      <aside><template id="B:1"></template></aside></div><footer>Footer words</footer>
      <div hidden id="S:0"><article><h1>Pier closed</h1><p>${sentence.en.repeat(2)}</p><template id="P:2"></template></article></div>
      <script>$RC=function(b,c){};$RC("B:0","S:0")</script>
      <div hidden id="S:1"><p>Streamed into the aside: ${sentence.en.repeat(2)}</p></div><script>$RC("B:1","S:1")</script>
      <div hidden id="S:2"><p>Streamed into the article: ${sentence.en}</p></div><script>$RS("S:2","P:2")</script>
      <div hidden id="S-menu"><p>${sentence.en}A menu that opens later.</p></div>`,
    own: ["Pier closed", "loosened three of its piles", "Streamed into the article"],
    rest: ["Section 3", "Footer words", "opens later", "Streamed into the aside"],
  },
  {
    name: "a recipe: ingredients, steps and notes, beside a table of more words",
    html: `<head><script type=application/ld+json>{"@type":"Recipe","name":"Fish soup"}</script><body>${links(30, "Recipes")}
      <div class=post><h1>Fish soup</h1><div class=intro>
      <p>${sentence.en.repeat(3)}This soup warmed everybody who had to wait for a ferry that evening.</p></div>
      <div class=card><div class=col><h2>Ingredients</h2><ul><li>500 g cod<li>2 leeks<li>1 l fish stock<li>3 <a href=/p>potatoes</a></ul></div>
      <div class=col><h2>Method</h2><ol>${times(
        5,
        (n) => `<li>Step ${n}: cut the leeks into rings, sweat them in butter,
        and add the stock when they are soft, not before.</li>`,
      )}</ol></div>
      <div class=col><table>
        <tr><td>Nutrition, by serving: ${times(24, (n) => `nutrient ${n}, ${n} g, ${n} % of a day, `)}<tr><td>estimated</table></div></div>
      <div class=notes><h2>Notes</h2>
        <p>${sentence.en.repeat(2)}The soup keeps for two days in the fridge, but the potatoes get mealy when it is
        frozen and thawed.</p></div></div>${teasers(12)}`,
    own: ["warmed everybody", "500 g cod", "3 potatoes", "Step 0", "Step 4", "get mealy"],
    rest: ["Recipes 7", "Teaser"],
  },
  {
    name: "a small blog: a short post beside a long archive without a class",
    html: `<head><title>Pier closed – Harbour notes</title><body><table><tr><td>${links(80, "Archive")}<td>
      <h2><a href=/p/1>Pier closed</a></h2><p>${sentence.en}${sentence.en}I took the long way round, which is muddy.</p><p>Posted by Ann</p></td></tr></table>`,
    own: ["Pier closed", "which is muddy"],
    rest: ["Archive 7"],
  },
  {
    name: "a forum: the posts of a thread",
    html: `<body><div id=header>${links(20, "Board")}</div><h1>Is the pier open?</h1>
      <div class=thread>${times(
        6,
        (n) => `<div class=post id=post${n}>
          <div class=user><a href=/u/${n}>User ${n}</a> Joined 2019 Posts: ${n}00</div><div class=body>Reply ${n}. ${sentence.en.repeat(2)}</div></div>`,
      )}</div>
      <div class=login><form>Log in to reply to this thread, or register, which takes a minute and an address</form></div>`,
    own: ["Is the pier open?", "Reply 0.", "Reply 5."],
    rest: ["Board 7", "Log in to reply"],
  },
  {
    name: "a thread whose posts are called comments",
    html: `<body>${links(20, "Board")}<h1>Is the pier open?</h1>
      <table class=comment-tree>${times(6, (n) => `<tr><td class=comment><p>Reply ${n}. ${sentence.en.repeat(2)}</p></td></tr>`)}</table><p>Add a reply`,
    own: ["Is the pier open?", "Reply 0.", "Reply 5."],
    rest: ["Board 7"],
  },
  {
    name: "documentation: prose, code and definitions, and not the tree of chapters",
    html: `<body><div class=tree><ul>${times(60, (n) => `<li><a href=/d/${n}>Chapter ${n}</a>`)}</ul></div><div class=doc><h1>Moor a boat</h1>
      <p>${sentence.en}</p><pre>boat.moor({ pier: "north", lines: 4 })</pre><h2>Options</h2>
      <dl><dt>pier<dd>The pier's name, as the harbour master writes it on the board.<dt>lines<dd>How many lines are made fast, 4 unless it is calm.</dl>
      <p>${sentence.en}An error is thrown where the pier is closed.</p></div><div>© the harbour</div>`,
    own: ["Moor a boat", "boat.moor", "4 unless it is calm", "An error is thrown"],
    rest: ["Chapter 7"],
  },
  {
    name: "a product page: description and data, and not what else is sold",
    html: `<head><meta property=og:type content=product><body>${links(90, "Category")}<div class=product><h1>Mooring line 14 mm</h1>
      <div class=description><p>A braided line of polyester, which stays soft in salt water and holds three tonnes, spliced at one end. ${sentence.en}</p></div>
      <table><tr><th>Length<td>12 m<tr><th>Diameter<td>14 mm</table></div>${teasers(16)}`,
    own: ["Mooring line 14 mm", "spliced at one end"],
    rest: ["Category 7", "Teaser", "picture of teaser"],
  },
  {
    name: "a live blog: all entries",
    html: `<body>${links(40, "Live")}<main><h1>Storm: as it happened</h1>
      ${times(
        8,
        (n) => `<article><time datetime=2026-11-20T1${n}:00Z>1${n}:00</time>
      <h2>Entry ${n}</h2><p>Update ${n}: ${sentence.en}</p></article>`,
      )}</main>
      <div class=newsletter><p>Subscribe to our newsletter, which tells you on every morning of the week what the storm left.</p></div>`,
    own: ["Entry 0", "Update 0:", "Update 7:"],
    rest: ["Live 7", "Subscribe to our"],
  },
  {
    name: "an article whose template puts all of the page into an aside",
    html: `<body>${links(4, "Top")}<aside class=content><h1>Pier closed</h1><p>${sentence.en.repeat(2)}</p><p>${sentence.en}</p></aside>`,
    own: ["loosened three"],
    rest: ["Top 3"],
  },
  {
    name: "what microdata call the article, with its lead, among longer texts of readers",
    html: `<body><article><h1>Pier closed</h1><p>The northern pier of the harbour stays closed for as long as the winter lasts, says its master.</p>
      <div itemprop=articleBody>${times(3, () => `<p>${sentence.en}</p>`)}</div>
      <div>${times(12, (n) => `<div><p>Reader ${n}: ${sentence.en}</p></div>`)}</div></article>`,
    own: ["as long as the winter lasts", "loosened three"],
    rest: ["Reader 3"],
  },
  {
    name: "text in a declarative shadow root, and in a part that is folded until it is found",
    html: `<body>${links(20, "Menu")}<news-story><template shadowrootmode=open><h1>Pier closed</h1><p>${sentence.en.repeat(2)}</p>
      <div hidden=until-found><p>${sentence.en}Folded away.</p></div></template></news-story><template><p>${sentence.en}Never shown.</p></template>`,
    own: ["loosened three", "Folded away"],
    rest: ["Menu 7", "Never shown"],
  },
  {
    name: "a page whose class says that comments are open",
    html: `<body><div class="post comments-open"><h1>Pier closed</h1><p>${sentence.en.repeat(3)}</p></div>
      <div id=comments>${times(9, (n) => `<p>Comment ${n}: ${sentence.en}</p>`)}</div>`,
    own: ["loosened three"],
    rest: ["Comment 3"],
  },
];

describe("the text of", () => {
  it.each(templates.map((template) => [template.name, template] as const))(
    "%s",
    async (_, { html, own, rest }) => {
      const text = await textOf(html);

      expect(own.filter((part) => !text.includes(part))).toEqual([]);
      expect(rest.filter((part) => text.includes(part))).toEqual([]);
    },
  );

  it("of a list of links is the whole list, whatever notice precedes it", async () => {
    const text = await textOf(`<body><h1>Directory</h1><p>${sentence.en}</p>${links(400, "Place")}`);

    expect(text).toContain("Place 7");
  });
});

it("includes pictures when the text around them is main text", async () => {
  const text = await textOf(`<body><div><img alt="site logo"></div>
    <div><div><img alt="banner beside"> Advertising partner of ours</div></div>
    <div class=story><h1>Pier closed</h1><img alt="the pier from above">
    <p>${sentence.en.repeat(3)}</p><figure><img alt="a loose pile"></figure></div>${teasers(3)}`);

  expect(text).toContain("the pier from above");
  expect(text).toContain("a loose pile");
  expect(text).not.toMatch(/banner beside|picture of teaser/);
});
