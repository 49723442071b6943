import { Button, Divider, Group, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Pencil, PhoneOutgoing } from 'lucide-react';
import type { ReactNode } from 'react';
import { api, dataOf } from '../app/api.ts';
import { notifyDone } from '../parts/notify.ts';
import { SidePanel } from '../parts/side-panel.tsx';
import { EmptyState } from '../parts/states.tsx';
import { SwitchActions } from '../parts/switch-actions.tsx';
import { trunkPanelText as text, trunkText } from '../text/trunks.ts';
import { refreshNumbers, type Trunk } from './queries.ts';
import { TestCall } from './test-call.tsx';
import { TrunkDialog } from './trunk-dialog.tsx';
import { GatewayFacts, HealthFacts, SettingFacts, TrunkNumbers } from './trunk-facts.tsx';
import { TrunkProbes } from './trunk-probes.tsx';

interface TrunkPanelProps {
  trunks: readonly Trunk[];
  /** Id of the shown trunk; undefined closes the panel. */
  id: string | undefined;
  onClose: () => void;
}

export function TrunkPanel({ trunks, id, onClose }: TrunkPanelProps) {
  const trunk = trunks.find((each) => each.id === id);
  return (
    <SidePanel title={trunk?.name ?? trunkText.tab} isOpen={id !== undefined} onClose={onClose}>
      {trunk === undefined ? (
        <EmptyState title={trunkText.gone} />
      ) : (
        <>
          <Actions trunk={trunk} onClose={onClose} />
          <Section title={text.health}>
            <HealthFacts trunk={trunk} />
            <TrunkProbes trunk={trunk} />
          </Section>
          {trunk.gateways.length > 1 && (
            <Section title={text.gateways}>
              <GatewayFacts trunk={trunk} />
            </Section>
          )}
          <Section title={text.numbers}>
            <TrunkNumbers trunk={trunk} />
          </Section>
          <Section title={text.settings}>
            <SettingFacts trunk={trunk} />
          </Section>
        </>
      )}
    </SidePanel>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} size="h6" mb={6}>
        {title}
      </Title>
      <Divider mb="sm" />
      {children}
    </section>
  );
}

function Actions({ trunk, onClose }: { trunk: Trunk; onClose: () => void }) {
  const [isEditing, editing] = useDisclosure(false);
  const [isTesting, testing] = useDisclosure(false);
  const { id, name, status } = trunk;
  const path = { params: { path: { id } } };
  const setStatus = async (next: Trunk['status']) => {
    await dataOf(api.PATCH('/dialer/trunks/{id}', { ...path, body: { status: next } }));
    await refreshNumbers();
  };
  const enable = async () => {
    await setStatus('active');
    notifyDone(text.enabled(name));
  };
  const remove = async () => {
    await dataOf(api.DELETE('/dialer/trunks/{id}', path));
    onClose();
    await refreshNumbers();
    notifyDone(text.deleted(name));
  };
  return (
    <Group gap="xs">
      {status === 'active' && (
        <Button size="xs" leftSection={<PhoneOutgoing size={14} aria-hidden />} onClick={testing.open}>
          {text.test}
        </Button>
      )}
      <Button size="xs" variant="default" leftSection={<Pencil size={14} aria-hidden />} onClick={editing.open}>
        {text.edit}
      </Button>
      <SwitchActions
        isActive={status === 'active'}
        text={{ ...text, disableTitle: text.disableTitle(name), deleteTitle: text.deleteTitle(name) }}
        onEnable={enable}
        onDisable={() => setStatus('disabled')}
        onDelete={remove}
      />
      <TrunkDialog trunk={trunk} isOpen={isEditing} onClose={editing.close} />
      <TestCall trunk={trunk} isOpen={isTesting} onClose={testing.close} />
    </Group>
  );
}
