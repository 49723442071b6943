import './phone.css';
import { SimpleGrid, Stack } from '@mantine/core';
import { Lock } from 'lucide-react';
import { useMay, useSession } from '../app/session.ts';
import { PageHeader } from '../parts/page-header.tsx';
import { EmptyState } from '../parts/states.tsx';
import { phoneText } from '../text/phone.ts';
import { goAvailable, usePhone } from './agent-phone.ts';
import { AvailabilityButton, AvailabilityCard, ProblemAlert, UnavailableAlert } from './availability.tsx';
import { CallPanel } from './call-panel.tsx';
import { DevicesCard } from './devices-card.tsx';
import { DialForm } from './dial-form.tsx';
import { EndedCard } from './ended-card.tsx';
import { MicrophoneHelp } from './microphone-help.tsx';
import { NotifyButton } from './notify-button.tsx';
import { ShortcutsCard } from './shortcuts.tsx';

export function Page() {
  const { write } = useMay();
  return write ? <PhonePage /> : <ViewerPage />;
}

function PhonePage() {
  const phone = usePhone();
  const { server } = useSession();
  const isUnavailable = server.features.webrtc === false && phone.problem === null;
  return (
    <>
      <PageHeader title={phoneText.title} description={phoneText.description}>
        <NotifyButton />
        <AvailabilityButton phone={phone} />
      </PageHeader>
      <SimpleGrid cols={{ base: 1, md: 2 }} maw={960}>
        <Stack>
          <ProblemAlert problem={phone.problem} />
          {isUnavailable && <UnavailableAlert detail={null} />}
          {phone.call === null ? (
            <>
              <AvailabilityCard phone={phone} />
              <MicrophoneHelp status={phone.microphone} onRetry={() => void goAvailable()} />
              {phone.ended && <EndedCard ended={phone.ended} />}
              <DialForm isReady={phone.link === 'online'} />
            </>
          ) : (
            <CallPanel key={phone.call.callId} call={phone.call} phone={phone} />
          )}
        </Stack>
        <Stack>
          <DevicesCard />
          <ShortcutsCard />
        </Stack>
      </SimpleGrid>
    </>
  );
}

function ViewerPage() {
  return (
    <>
      <PageHeader title={phoneText.title} description={phoneText.description} />
      <EmptyState icon={Lock} title={phoneText.viewerTitle}>
        {phoneText.viewerHint}
      </EmptyState>
    </>
  );
}
