# The agents of the README's pictures: one works on and on, one crashes once, one lies once, one asks, one fails for good.
steps() {
    at=1
    while [ "$at" -le "$1" ]; do
        echo "step $at: $2"
        sleep 1
        at=$((at + 1))
    done
}
case $REKINDLE_TASK in
T1) steps 2 "cart lines and totals, cargo test cart" ;;
T2) steps 2 "rounding of discounts"; [ -e crashed ] || { touch crashed; kill -9 $$; } ;;
T3) steps 600 "src/gateway.rs: retries with an idempotency key, 14 tests pass" ;;
T4) rekindle ask "Which id do orders get?" --option "ULID" --option "UUIDv7" --option "bigint" --context "Old orders have a bigint." --wait ;;
T5) steps 3 "reservations"; [ -e lied ] && touch stock.ok; touch lied ;;
T6) steps 2 "reading the dump"; exit 3 ;;
T7) steps 600 "templates/receipt.html in three languages" ;;
esac
rekindle task done "$REKINDLE_TASK"
