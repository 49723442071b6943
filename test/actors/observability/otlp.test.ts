import { describe, expect, it } from 'vitest';
import { openOtlpTracing } from '../../../actors/observability/tracing.otlp.ts';
import { startOtlpReceiver, treeOf } from '../../calls/otlp-receiver.ts';
import { eventually } from '../../eventually.ts';
import { createTestLogger } from '../fakes.ts';

describe('exported traces', () => {
  it('include unsent ones when the server stops', async () => {
    await using receiver = await startOtlpReceiver();
    const tracing = openOtlpTracing({ endpoint: receiver.url, logger: createTestLogger(), sendEveryMs: 60_000 });
    tracing.requestStarted({ method: 'GET', route: '/voices/:id', traceparent: undefined }).end(200);
    await tracing[Symbol.asyncDispose]();
    expect(treeOf(receiver.spans, undefined)).toEqual(['GET /voices/:id']);
  });

  it('mark a failed request, and end it once', async () => {
    await using receiver = await startOtlpReceiver();
    const tracing = openOtlpTracing({ endpoint: receiver.url, logger: createTestLogger() });
    for (const [first, second] of [
      [499, 200],
      [500, 200],
    ] as const) {
      const request = tracing.requestStarted({ method: 'GET', route: '/voices', traceparent: 'malformed' });
      request.end(first);
      request.end(second);
    }
    await tracing[Symbol.asyncDispose]();
    expect(
      receiver.spans.map(({ status, attributes }) => [status.code ?? 0, attributes.at(-1)?.value.intValue]),
    ).toEqual([
      [0, 499],
      [2, 500],
    ]);
  });

  it('log once when the collector starts to reject them, and once when it accepts them again', async () => {
    await using receiver = await startOtlpReceiver();
    receiver.status = 400;
    const logger = createTestLogger();
    await using tracing = openOtlpTracing({ endpoint: receiver.url, logger, sendEveryMs: 5 });
    const request = () => tracing.requestStarted({ method: 'GET', route: '/voices', traceparent: undefined }).end(200);
    request();
    await eventually(() => expect(logger.messages()).toEqual(['traces could not be sent']));
    receiver.status = 200;
    request();
    await eventually(() => expect(logger.messages()).toEqual(['traces could not be sent', 'traces are sent again']));
  });
});
