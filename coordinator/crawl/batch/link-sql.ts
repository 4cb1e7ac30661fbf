/** SQL over table out_link for what the view `link`, a row for each link, would have to read whole: links to a page. */

/** Pages of the target's own host that are looked through. */
const mostOwnPages = 5000;

/**
 * A query of the links to a page, at most so many: host_hash, url_hash, anchor and nofollow of each page that has one. By
 * the index of links to other hosts (out_link_to), and among the pages of the host itself. `host` and `url`: SQL of the
 * target's hashes.
 */
export function linksTo(host: string, url: string, most: number): string {
  const columns = `o.host_hash, o.url_hash, ${anchorOf(url)} as anchor, ${isNofollow(url)} as nofollow`;
  return `(
    (select ${columns} from out_link o where ${linksBeyond("o", url)} limit ${most})
    union all
    (select ${columns}
     from (select * from out_link where host_hash = ${host} limit ${mostOwnPages}) o
     where ${url} = any (o.urls[:o.own_links])
     limit ${most})
    limit ${most}
  )`;
}

/** Of a row `o` of out_link: that it leads to the URL, which is of another host. As the index has it. */
export const linksBeyond = (o: string, url: string): string =>
  `${o}.urls[${o}.own_links + 1:] @> array[${url}]`;

/** Of a row `o` of out_link that leads to the URL. */
export const isNofollow = (url: string): string =>
  `coalesce(array_position(o.urls, ${url}) = any (o.nofollows), false)`;

const anchorOf = (url: string): string => `split_part(o.anchors, e'\\n', array_position(o.urls, ${url}))`;
