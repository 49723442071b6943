import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { isLegName, type LegEvent } from '../../machines/events.ts';
import { type RequestScope, requestScope, type TraceParent } from '../../runtime/request-scope.ts';
import type { LiveCall } from '../call-registry.ts';
import type { Logger } from '../logger.ts';
import type { MediaState, ObservedLeg, Observer, PlacementOutcome } from './observer.ts';
import type { RequestSpan, Tracing } from './tracing.ts';

export interface OtlpTracingOptions {
  /** Base URL of the collector; spans are sent to `/v1/traces` below it. */
  endpoint: string;
  /** Headers of each request, such as credentials. */
  headers?: readonly (readonly [name: string, value: string])[];
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Interval between exports. Default 2 000. */
  sendEveryMs?: number;
}

export interface OtlpTracing extends Tracing, AsyncDisposable {
  readonly observer: Observer;
}

/** Timeout for the collector, also during shutdown. */
const EXPORT_TIMEOUT_MS = 3_000;

/**
 * Exports traces of HTTP requests and calls, as OTLP over HTTP in JSON. The span of a placement request has the
 * children `call.admission` and `call`. The `call` span has a child for each leg, the media session and the settlement.
 * Attributes are ids, codes and counts, never numbers or text.
 */
export function openOtlpTracing(options: OtlpTracingOptions): OtlpTracing {
  const { endpoint, headers = [], logger, sendEveryMs = 2_000 } = options;
  const exporter = new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: Object.fromEntries(headers),
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'tandem' }),
    // A client's own trace context decides whether the trace is recorded.
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reportingFailures(exporter, logger),
        scheduledDelayMillis: sendEveryMs,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('tandem');
  const calls = new Map<string, TracedCall>();
  /** Spans of placements that are not admitted yet. */
  const admissions = new WeakMap<RequestScope, Span>();

  function requestStarted({ method, route, traceparent }: Parameters<Tracing['requestStarted']>[0]): RequestSpan {
    const client = readTraceparent(traceparent);
    const span = tracer.startSpan(
      `${method} ${route}`,
      { kind: SpanKind.SERVER, attributes: { 'http.request.method': method, 'http.route': route } },
      client === null ? ROOT_CONTEXT : contextOf({ ...client, isRemote: true }),
    );
    return {
      parent: span.spanContext(),
      end(status) {
        if (!span.isRecording()) return;
        span.setAttribute('http.response.status_code', status);
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  }

  function placementStarted(): (outcome: PlacementOutcome) => void {
    const scope = requestScope.getStore();
    const span = tracer.startSpan('call.admission', {}, parentOf(scope));
    if (scope !== undefined) admissions.set(scope, span);
    return (outcome) => {
      if (!span.isRecording()) return;
      span.setAttribute('tandem.placement.outcome', outcome);
      if (outcome !== 'placed' && outcome !== 'replayed') span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
  }

  function callStarted(call: LiveCall): void {
    const { callId } = call.row;
    const scope = requestScope.getStore();
    const admission = scope && admissions.get(scope);
    admission?.setAttributes({ 'tandem.placement.outcome': 'placed', 'tandem.call.id': callId });
    admission?.end();
    const direction = call.inbound === null ? 'outbound' : 'inbound';
    const attributes = { 'tandem.call.id': callId, 'tandem.call.direction': direction };
    const span = tracer.startSpan('call', { attributes }, parentOf(scope));
    const context = trace.setSpan(ROOT_CONTEXT, span);
    const open = new Set<Span>();
    calls.set(callId, { context, open });
    let settlement: Span | null = null;
    call.actor.on('moved', ({ move: { event } }) => {
      if (event === 'call.bridged') span.addEvent(event);
    });
    call.actor.subscribe({
      next: (snapshot) => {
        if (snapshot.matches('settling')) settlement ??= tracer.startSpan('call.settlement', {}, context);
      },
      // `call.settled` resolves in this case too.
      error: () => {},
    });
    void call.settled.then(() => {
      const { outcome } = call.actor.getSnapshot().context;
      settlement?.end();
      // An abandoned browser leg emits no last event.
      for (const leg of open) leg.end();
      if (outcome !== null) {
        span.setAttributes({ 'tandem.call.state': outcome.state, 'tandem.call.hangup_cause': outcome.hangupCause });
      }
      if (outcome?.state !== 'completed') span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      calls.delete(callId);
    });
  }

  function legStarted({ callId, leg, transport, direction }: ObservedLeg): (event: LegEvent) => void {
    const call = calls.get(callId);
    // Number verification calls are not calls of the API.
    if (call === undefined) return () => {};
    const attributes = { 'tandem.leg.id': leg, 'tandem.leg.transport': transport, 'tandem.leg.direction': direction };
    const role = isLegName(leg) ? leg : 'further';
    const span = tracer.startSpan(`leg ${role}`, { kind: SpanKind.CLIENT, attributes }, call.context);
    call.open.add(span);
    return (event) => {
      const status = 'sipStatus' in event ? { 'tandem.sip.status': event.sipStatus } : {};
      if (event.type === 'leg.ringing' || event.type === 'leg.answered') span.addEvent(event.type, status);
      if (event.type === 'leg.refused' || event.type === 'leg.ended') {
        span.setAttributes({ ...status, 'tandem.leg.hangup_cause': event.hangupCause });
      }
      if (event.type === 'leg.refused' || event.type === 'leg.lost') span.setStatus({ code: SpanStatusCode.ERROR });
      if (event.type === 'leg.refused' || event.type === 'leg.ended' || event.type === 'leg.lost') {
        call.open.delete(span);
        span.end();
      }
    };
  }

  function mediaStarted(sessionId: string): (state: MediaState) => void {
    const call = calls.get(sessionId);
    if (call === undefined) return () => {};
    const span = tracer.startSpan('media', {}, call.context);
    return (state) => {
      if (!span.isRecording()) return;
      if (state === 'opened') return void span.addEvent('media.opened');
      if (state === 'refused') span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
  }

  return {
    requestStarted,
    observer: {
      placementStarted,
      callStarted,
      legStarted,
      mediaStarted,
      utteranceRecognised: () => {},
      speechStarted: () => {},
      deliveryAttempted: () => {},
    },
    async [Symbol.asyncDispose]() {
      await provider.shutdown().catch(() => {});
    },
  };
}

interface TracedCall {
  context: Context;
  /** Spans of legs that have not ended. */
  open: Set<Span>;
}

function parentOf(scope: RequestScope | undefined): Context {
  return scope === undefined || scope.span === null ? ROOT_CONTEXT : contextOf(scope.span);
}

function contextOf(parent: TraceParent & { isRemote?: boolean }): Context {
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}

/** Parses W3C Trace Context, version 00 and later. Null if missing or malformed. */
export function readTraceparent(header: string | undefined): TraceParent | null {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(header?.trim() ?? '');
  const [, version, traceId, spanId, flags, more] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined || version === 'ff') return null;
  if (version === '00' && more !== undefined) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 };
}

/** Logs when the collector starts to fail and when it recovers, because the library logs neither. */
function reportingFailures(exporter: SpanExporter, logger: OtlpTracingOptions['logger']): SpanExporter {
  let isFailing = false;
  return {
    export(spans, onResult) {
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== 0;
        if (hasFailed && !isFailing) logger.warn({ err: result.error }, 'traces could not be sent');
        if (!hasFailed && isFailing) logger.info({}, 'traces are sent again');
        isFailing = hasFailed;
        onResult(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush && { forceFlush: () => exporter.forceFlush!() }),
  };
}
