import { serveThread } from '../../runtime/serve-thread.ts';
import { printableFault } from '../printable-fault.ts';
import { openSipServer } from './sip-server.ts';
import type { SipServerThread } from './worker-protocol.ts';

/** Entry of the SIP server's thread. */
await serveThread<SipServerThread>(async ({ data, report }) => {
  try {
    const server = await openSipServer(data, (error) => report(printableFault(error)));
    return {
      ready: { controlPort: server.controlPort, sipPort: server.sipPort },
      calls: {},
      dump: () => server.dump(),
      drain: () => server.close(),
    };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : null;
    return { ready: { failure: { message: error instanceof Error ? error.message : String(error), code } }, calls: {} };
  }
});
