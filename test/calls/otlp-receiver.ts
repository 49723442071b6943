import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span in OTLP/JSON. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
  events: { name: string }[];
  status: { code?: number };
  startTimeUnixNano: string;
  endTimeUnixNano: string;
}

export interface OtlpReceiver extends AsyncDisposable {
  url: string;
  spans: ReceivedSpan[];
  bodies: string[];
  headers: Record<string, unknown>;
  status: number;
}

/** The traces endpoint of an OpenTelemetry collector. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver: Omit<OtlpReceiver, 'url' | typeof Symbol.asyncDispose> = {
    spans: [],
    bodies: [],
    headers: {},
    status: 200,
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    receiver.headers = { ...request.headers, url: request.url };
    response.writeHead(receiver.status, { 'content-type': 'application/json' }).end('{}');
    if (receiver.status !== 200) return;
    receiver.bodies.push(body);
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { scopeSpans: { spans: ReceivedSpan[] }[] }[];
    };
    receiver.spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** Names of the spans of a trace, indented below their parents, siblings by start time. */
export function treeOf(spans: readonly ReceivedSpan[], parent: string | undefined, depth = 0): string[] {
  return spans
    .filter((span) => (span.parentSpanId ?? '') === (parent ?? ''))
    .toSorted((a, b) => (BigInt(a.startTimeUnixNano) < BigInt(b.startTimeUnixNano) ? -1 : 1))
    .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...treeOf(spans, span.spanId, depth + 1)]);
}
