"""The usage that an ACP agent reports, as tokens and cost of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    Provenance,
    RateLimitUpdated,
    SessionStatsUpdated,
    TokenUsageUpdated,
    Usage,
    format_optional_timestamp,
)
from sessionmgr.wire import UntypedFrame
from sessionmgr_adapters.acp.decode import as_dict, as_text, convert_leniently
from sessionmgr_adapters.acp.updates import AcpUsage

if TYPE_CHECKING:
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.acp.state import AcpState
    from sessionmgr_adapters.acp.updates import AcpCost, ContextUpdate

_LARGEST: Final = 2**53
_DOLLARS: Final = "USD"
_RATE_LIMIT: Final = "/rateLimit"
"""The end of the name of an extension, which begins with the name of an agent."""


def token_usage(given: AcpUsage) -> Usage:
    """Return numbers of tokens in our form.

    Some agents count cached tokens as input and thoughts as output, and others count them apart;
    the total tells which.
    """
    read, written = _count(given.cached_read_tokens), _count(given.cached_write_tokens)
    asked, said = _count(given.input_tokens), _count(given.output_tokens)
    cached, thought, total = (
        read + written,
        _count(given.thought_tokens),
        _count(given.total_tokens),
    )
    holds_cached = total in (asked + said, asked + said + thought)
    holds_thought = total in (asked + said, asked + said + cached)
    return Usage(
        input=max(0, asked - cached) if holds_cached else asked,
        cached_input=read,
        cache_write=written,
        output=said if holds_thought else said + thought,
        reasoning=thought,
    )


def _count(value: Json) -> int:
    if not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < _LARGEST else 0


def usage_since(before: AcpUsage, now: AcpUsage) -> AcpUsage:
    """Return the usage since an earlier report, of an agent that reports sums."""
    names = AcpUsage.__struct_fields__
    return AcpUsage(
        **{
            name: max(0, _count(getattr(now, name)) - _count(getattr(before, name)))
            for name in names
        }
    )


def usage_of_meta(meta: Json) -> AcpUsage | None:
    """Return the usage in the extensions of an update or of the end of a turn."""
    match meta:
        case {"usage": dict(given)}:
            found = convert_leniently(given, AcpUsage)
            return None if isinstance(found, UntypedFrame) else found
        case {"quota": {"token_count": dict(given)}}:
            asked, said = _count(given.get("input_tokens")), _count(given.get("output_tokens"))
            return AcpUsage(input_tokens=asked, output_tokens=said, total_tokens=asked + said)
        case _:
            return None


def call_usage_events(meta: Json, state: AcpState) -> list[Event]:
    """Return the events for the usage of one call of the model."""
    found = usage_of_meta(meta)
    return [] if found is None else _usage_event(token_usage(found), state)


def turn_usage_events(usage: AcpUsage | None, meta: Json, state: AcpState) -> list[Event]:
    """Return the events for the usage of the whole turn, of which a part may be reported."""
    found = usage or usage_of_meta(meta)
    if found is None:
        return []
    whole, known = token_usage(found), state.turn.usage
    rest = {
        name: max(0, getattr(whole, name) - getattr(known, name))
        for name in Usage.__struct_fields__
    }
    return _usage_event(Usage(**rest), state)


def _usage_event(delta: Usage, state: AcpState) -> list[Event]:
    if delta == Usage():
        return []
    state.turn.usage += delta
    if not state.reports_cost:
        return [TokenUsageUpdated(usage=delta)]
    # The cost of these tokens was reported apart, so they add nothing to it.
    return [TokenUsageUpdated(usage=delta, cost=0.0, provenance=Provenance.REPORTED)]


def context_events(update: ContextUpdate, state: AcpState) -> list[Event]:
    """Return the events for the used part of the context, and for the cost."""
    events = rate_limit_events(update.meta, state)
    context = (_count(update.used), _count(update.size))
    if context != state.context:
        state.context = context
        events.append(SessionStatsUpdated(context_used=context[0], context_window=context[1]))
    return events if update.cost is None else [*events, *_cost_events(update.cost, state)]


def _cost_events(cost: AcpCost, state: AcpState) -> list[Event]:
    """Return the increase of the cost, which agents report for the session as a whole."""
    if cost.currency != _DOLLARS:
        return _currency_events(cost.currency, state)
    known, state.cost = state.cost, cost.amount
    if not state.has_begun:
        return []
    state.reports_cost = True
    if known is None and state.is_resumed:
        # The amount may include earlier runs, so the run's own part of it is unknown. The sum of
        # the run's costs is then partial, too, whatever is known of the rest.
        return [TokenUsageUpdated(usage=Usage(), cost=0.0, provenance=Provenance.PARTIAL)]
    delta = cost.amount - (known or 0)
    if delta < 0:  # the agent has begun to count anew
        delta = cost.amount
    if delta <= 0:
        return []
    return [TokenUsageUpdated(usage=Usage(), cost=delta, provenance=Provenance.REPORTED)]


def _currency_events(currency: str, state: AcpState) -> list[Event]:
    if currency in state.currencies:
        return []
    state.currencies.add(currency)
    message = f"the agent reports its cost in {currency or 'no currency'}: it is not recorded"
    failure = Failure(kind=FailureKind.PROVIDER_ERROR, message=message)
    return [ErrorOccurred(failure=failure, severity="warning")]


def rate_limit_events(meta: Json, state: AcpState) -> list[Event]:
    """Return the event for a rate limit that has changed."""
    named = (each for name, each in as_dict(meta).items() if name.endswith(_RATE_LIMIT))
    limit = next(named, None)
    if not isinstance(limit, dict) or limit == state.limit:
        return []
    state.limit = limit
    resets_at, used = limit.get("resetsAt"), limit.get("utilization")
    return [
        RateLimitUpdated(
            bucket=as_text(limit.get("rateLimitType")) or "unknown",
            state=as_text(limit.get("status")) or "unknown",
            resets_at=format_optional_timestamp(
                float(resets_at) if isinstance(resets_at, int | float) else None
            ),
            utilisation=float(used) if isinstance(used, int | float) else None,
        )
    ]
