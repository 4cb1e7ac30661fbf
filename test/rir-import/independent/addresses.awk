# Which ranges are special-purpose (IANA's registries), told apart without any code of the project's: by
# plain arithmetic for IPv4, by the leading groups for IPv6. Concatenated before the programs that use it.

function number4(text, part, n, i, value) {
  gsub(/[ \t]/, "", text)
  n = split(text, part, ".")
  if (n < 1 || n > 4) return -1
  value = 0
  for (i = 1; i <= 4; i++) {
    if (i > n) part[i] = 0
    else if (part[i] !~ /^[0-9]+$/ || length(part[i]) > 3 || part[i] + 0 > 255) return -1
    value = value * 256 + part[i]
  }
  return value
}

function within(first, last, block, length_, start) {
  start = number4(block)
  return first >= start && last <= start + 2 ^ (32 - length_) - 1
}

function special4(first, last) {
  if (first == last && (first == number4("192.0.0.9") || first == number4("192.0.0.10"))) return 0
  return within(first, last, "0", 8) || within(first, last, "10", 8) || within(first, last, "100.64", 10) \
    || within(first, last, "127", 8) || within(first, last, "169.254", 16) || within(first, last, "172.16", 12) \
    || within(first, last, "192.0.0", 24) || within(first, last, "192.0.2", 24) || within(first, last, "192.88.99", 24) \
    || within(first, last, "192.168", 16) || within(first, last, "198.18", 15) || within(first, last, "198.51.100", 24) \
    || within(first, last, "203.0.113", 24) || within(first, last, "224", 4) || within(first, last, "240", 4)
}

function hex(text, i, value) {
  value = 0
  for (i = 1; i <= length(text); i++) value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
  return value
}

# The eight groups of an IPv6 address into g[1..8]; 0 when it is none.
function groups6(text, g, gap, head, tail, n, m, i) {
  text = tolower(text)
  gsub(/[ \t]/, "", text)
  if (text !~ /^[0-9a-f:]+$/ || text ~ /:::/ || text ~ /[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]/) return 0
  gap = index(text, "::")
  if (gap == 0) {
    if (split(text, head, ":") != 8) return 0
    for (i = 1; i <= 8; i++) g[i] = hex(head[i])
    return 1
  }
  n = split(substr(text, 1, gap - 1), head, ":")
  m = split(substr(text, gap + 2), tail, ":")
  if (n + m > 7 || index(substr(text, gap + 2), "::")) return 0
  for (i = 1; i <= 8; i++) g[i] = i <= n ? hex(head[i]) : (i > 8 - m ? hex(tail[i - 8 + m]) : 0)
  return 1
}

function special6(g, length_) {
  if (length_ == 2) return g[1] >= 16384
  if (length_ < 2) return 0
  if (g[1] < 8192 || g[1] >= 16384) return 1
  if (g[1] == 8194) return length_ >= 16                               # 2002::/16
  if (g[1] == 16383) return length_ >= 20 && g[2] < 4096               # 3fff::/20
  if (g[1] != 8193) return 0                                           # 2001::/16
  if (g[2] == 3512) return length_ >= 32                               # 2001:db8::/32
  if (length_ < 23 || g[2] >= 512) return 0                            # 2001::/23, but for:
  if (g[2] == 3 && length_ >= 32) return 0
  if (g[2] >= 32 && g[2] < 64 && length_ >= 28) return 0
  return !(g[2] == 4 && g[3] == 274 && length_ >= 48)
}
