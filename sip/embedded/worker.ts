import { serveThread } from '../../runtime/serve-thread.ts';
import { printableFault } from '../printable-fault.ts';
import { openSipServer } from './sip-server.ts';
import type { SipServerThread } from './worker-protocol.ts';

/** Entry of the SIP server's thread. */
await serveThread<SipServerThread>(async ({ data, report }) => {
  try {
    const { isTraced, ...options } = data;
    const server = await openSipServer(options, {
      onFault: (error) => report({ type: 'fault', error: printableFault(error) }),
      ...(isTraced && { onMessages: (messages) => report({ type: 'messages', messages }) }),
      onUntrusted: (name, reason) => report({ type: 'untrusted', name, reason }),
      onLimited: (dropped) => report({ type: 'limited', dropped }),
    });
    return {
      ready: { controlPort: server.controlPort, sipPort: server.sipPort, tlsPort: server.tlsPort },
      calls: {},
      dump: () => server.dump(),
      drain: () => server.close(),
    };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : null;
    return { ready: { failure: { message: error instanceof Error ? error.message : String(error), code } }, calls: {} };
  }
});
