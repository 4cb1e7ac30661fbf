# libloc's text, 135 MB of it: objects by paragraph alone, none of which has an address class of RPSL's.
# Prints records, kept, ignored, malformed.
BEGIN { RS = ""; FS = "\n" }
{ object = $1; for (i = 1; i <= NF && substr($i, 1, 1) == "#"; i++) object = $(i + 1) }
object == "" { next }
object ~ /^(inetnum|inet6num|organisation|NetHandle|V6NetHandle|OrgID):/ { exit 1 }
{ records++ }
END { print records + 0, 0, records + 0, 0 }
