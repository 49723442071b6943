import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FileServer extends AsyncDisposable {
  url: string;
  requests: IncomingHttpHeaders[];
}

export interface CuttingServer extends FileServer {
  /** Reports that the client has stored `bytes`; cutting earlier would lose data in flight. */
  taken(bytes: number): void;
}

export interface ServedFile {
  bytes: Buffer;
  etag: string | null;
  /** Cuts the connection after this many bytes, one entry per response; later responses are complete. */
  cutAfter?: number[];
}

/** Serves one changeable file with ranges (RFC 9110, section 14) on a real socket. */
export async function serveFile(file: ServedFile): Promise<CuttingServer> {
  let pendingCut: { at: number; cut: () => void } | null = null;
  const server = await serve((response, headers) => {
    const start = rangeStart(headers, file.etag);
    if (start >= file.bytes.length && start > 0) return response.writeHead(416).end();
    const body = file.bytes.subarray(start);
    response.writeHead(start > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(file.etag !== null && { etag: file.etag }),
      ...(start > 0 && { 'content-range': `bytes ${start}-${file.bytes.length - 1}/${file.bytes.length}` }),
    });
    const cut = file.cutAfter?.shift();
    if (cut === undefined) return response.end(body);
    pendingCut = { at: start + cut, cut: () => response.destroy() };
    response.flushHeaders();
    response.write(body.subarray(0, cut));
  });
  return Object.assign(server, {
    taken(bytes: number) {
      if (pendingCut === null || bytes < pendingCut.at) return;
      pendingCut.cut();
      pendingCut = null;
    },
  });
}

export async function serve(
  handle: (response: ServerResponse, headers: IncomingHttpHeaders) => void,
): Promise<FileServer> {
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    handle(response, request.headers);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/model.tar.gz`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Ignores the range if `if-range` does not match. */
function rangeStart(headers: IncomingHttpHeaders, etag: string | null): number {
  const match = /^bytes=(\d+)-$/.exec(headers.range ?? '');
  return match === null || headers['if-range'] !== etag ? 0 : Number(match[1]);
}
