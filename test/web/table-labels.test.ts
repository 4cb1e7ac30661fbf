/** On a narrow screen each cell of a table says what it is: in the words of the table's own head. */
import { expect, it } from "vitest";
import { html, withCellLabels } from "#coordinator/web/html";

const labelled = (markup: ReturnType<typeof html>) => withCellLabels(markup.markup);

it("a cell is labelled by the head of its column, spans counted", () => {
  const page = html`<p>before</p><table><thead><tr><th scope="col">Host</th><th><a href="?sort=a">Pages</a> ↓</th><th>RTT</th></tr></thead>
<tbody><tr><th scope="row">a.example</th><td class="number">5</td><td>8 ms</td></tr><tr><td colspan="2">none</td><td>–</td></tr></tbody></table><p>after</p>`;

  expect(labelled(page)).toBe(
    page.markup
      .replace('<td class="number">5', '<td data-label="Pages ↓" class="number">5')
      .replace("<td>8 ms", '<td data-label="RTT">8 ms')
      .replace('<td colspan="2">', '<td data-label="Host" colspan="2">')
      .replace("<td>–", '<td data-label="RTT">–'),
  );
});

it("what only screen readers are told is no label, and tables without a head stay as they are", () => {
  const page = html`<table><thead><tr><th>Name</th><th><span class="hidden">Change</span></th></tr></thead><tbody><tr><td>a</td><td>b</td></tr></tbody></table
><table><tbody><tr><td>c</td></tr></tbody></table>`;

  expect(labelled(page)).toContain('<td data-label="Name">a</td><td>b</td>');
  expect(labelled(page)).toContain("<td>c</td>");
});

it("a head from outside stays text in the attribute, in linear time", () => {
  const hostile = `"><script>x</script>'`;
  const rows = Array.from({ length: 20_000 }, () => html`<tr><td>${"<td>".repeat(10)}</td></tr>`);
  const page = html`<table><thead><tr><th>${hostile}</th></tr></thead><tbody>${rows}</tbody></table>`;

  expect(
    labelled(page).match(/<td data-label="&quot;&gt;&lt;script&gt;x&lt;\/script&gt;&#39;">/g),
  ).toHaveLength(20_000);
});
