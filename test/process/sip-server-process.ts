import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { openSharedControlPort } from './shared-control-port.ts';

/** The embedded SIP server in a separate process, instead of a drachtio-server. Prints its ports as JSON. */

const { SIP_PORT = '0', CONTROL_PORT = '0', DRACHTIO_SECRET = '' } = process.env;
const server = await startEmbeddedSipServer({
  ...{ sipHost: '127.0.0.1', sipPort: Number(SIP_PORT), transports: ['udp', 'tcp'], secret: DRACHTIO_SECRET },
});
const control = await openSharedControlPort({
  ...{ target: server.controlPort, secret: DRACHTIO_SECRET, port: Number(CONTROL_PORT) },
});
process.stdout.write(`${JSON.stringify({ sipPort: server.sipPort, controlPort: control.port })}\n`);
