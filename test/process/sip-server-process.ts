import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';

/** The embedded SIP server in a process of its own, in place of a drachtio-server. Prints its ports as JSON. */

const { SIP_PORT = '0', DRACHTIO_SECRET = '' } = process.env;
const server = await startEmbeddedSipServer({
  ...{ sipHost: '127.0.0.1', sipPort: Number(SIP_PORT), transports: ['udp', 'tcp'], secret: DRACHTIO_SECRET },
});
process.stdout.write(`${JSON.stringify({ sipPort: server.sipPort, controlPort: server.controlPort })}\n`);
