package org.apache.kafka.controller;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** The repairs of findings in the controller: advices, and what the woven code calls. */
public final class ControllerRepairs {
    private static final String MIN_ISR = "min.insync.replicas";
    private static final int NO_LEADER = -1;
    private static final int NO_LEADER_CHANGE = -2;
    private static volatile ReplicationControlManager manager;
    private static volatile List<Uuid> failing = List.of();

    private ControllerRepairs() { }

    /** F4: only replicas of the partition are eligible. */
    public static final class OnlyReplicasAreEligible {
        @Advice.OnMethodExit
        static void exit(
            @Advice.FieldValue(value = "targetElr", readOnly = false) List<Integer> targetElr,
            @Advice.FieldValue(value = "targetLastKnownElr", readOnly = false) List<Integer> targetLastKnownElr,
            @Advice.FieldValue("targetReplicas") List<Integer> targetReplicas
        ) {
            targetElr = only(targetElr, targetReplicas);
            targetLastKnownElr = only(targetLastKnownElr, targetReplicas);
        }
    }

    public static List<Integer> only(List<Integer> members, List<Integer> replicas) {
        return members.stream().filter(replicas::contains).toList();
    }

    /** F5: a ClearElrRecord leaves the ELR of a partition whose ISR is too small. */
    public static final class KeepsNeededElrs {
        @Advice.OnMethodEnter
        static Map<Integer, PartitionRegistration> enter(
            @Advice.This ReplicationControlManager manager, @Advice.Argument(0) ReplicationControlManager.TopicControlInfo topic
        ) {
            return registrations(manager, topic);
        }

        @Advice.OnMethodExit
        static void exit(
            @Advice.This ReplicationControlManager manager, @Advice.Argument(0) ReplicationControlManager.TopicControlInfo topic,
            @Advice.Enter Map<Integer, PartitionRegistration> before
        ) {
            restore(manager, topic, before);
        }
    }

    /** F5: an ELR ends with the election whose ISR is large enough. */
    public static final class EndsElrWithElection {
        @Advice.OnMethodEnter
        static void enter(
            @Advice.FieldValue(value = "targetElr", readOnly = false) List<Integer> targetElr,
            @Advice.FieldValue("targetIsr") List<Integer> targetIsr, @Advice.FieldValue("minISR") int minISR
        ) {
            if (targetIsr.size() >= minISR) targetElr = List.of();
        }
    }

    /** F6: what empties an ELR goes through the index. */
    public static final class KeepsIndex {
        @Advice.OnMethodEnter
        static Map<Integer, PartitionRegistration> enter(
            @Advice.This ReplicationControlManager manager, @Advice.Argument(0) ReplicationControlManager.TopicControlInfo topic
        ) {
            return registrations(manager, topic);
        }

        @Advice.OnMethodExit
        static void exit(
            @Advice.This ReplicationControlManager manager, @Advice.Argument(0) ReplicationControlManager.TopicControlInfo topic,
            @Advice.Enter Map<Integer, PartitionRegistration> before
        ) {
            updateIndex(manager, topic, before);
        }
    }

    public static Map<Integer, PartitionRegistration> registrations(
        ReplicationControlManager manager, ReplicationControlManager.TopicControlInfo topic
    ) {
        Map<Integer, PartitionRegistration> registrations = new HashMap<>();
        for (int id = 0; id < topic.numPartitions(Long.MAX_VALUE); id++) {
            registrations.put(id, manager.getPartition(topic.topicId(), id));
        }
        return registrations;
    }

    @SuppressWarnings("unchecked")
    public static void restore(
        ReplicationControlManager manager, ReplicationControlManager.TopicControlInfo topic,
        Map<Integer, PartitionRegistration> before
    ) {
        // A topic that is created with a min.insync.replicas of its own has no partition yet, and no count of replicas.
        if (before.isEmpty()) return;
        Map<Integer, PartitionRegistration> parts = (Map<Integer, PartitionRegistration>) value(topic, "parts");
        int minIsr = manager.getTopicEffectiveMinIsr(topic.name());
        before.forEach((id, registration) -> {
            if (registration.isr.length < minIsr) parts.put(id, registration);
        });
    }

    public static void updateIndex(
        ReplicationControlManager manager, ReplicationControlManager.TopicControlInfo topic,
        Map<Integer, PartitionRegistration> before
    ) {
        before.forEach((id, registration) -> manager.brokersToElrs().update(
            topic.topicId(), id, registration.elr, manager.getPartition(topic.topicId(), id).elr));
    }

    /** F8: while a heartbeat is handled, the directories that it reports as failed are not online. */
    public static final class FailsDirectoriesFirst {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) BrokerHeartbeatRequestData request) {
            failing(request.offlineLogDirs());
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            failing(List.of());
        }
    }

    /** F8. */
    public static final class IsNotFailing {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(1) Uuid directory, @Advice.Return(readOnly = false) boolean isOnline) {
            isOnline = isOnline && !isFailing(directory);
        }
    }

    public static void failing(List<Uuid> directories) {
        failing = directories;
    }

    public static boolean isFailing(Uuid directory) {
        return failing.contains(directory);
    }

    /** Remembers the manager, which others of these classes have no reference to. */
    public static final class Remembers {
        @Advice.OnMethodExit
        static void exit(@Advice.This ReplicationControlManager built) {
            remember(built);
        }
    }

    public static void remember(ReplicationControlManager built) {
        manager = built;
    }

    /** F10: a replica that leaves a directory which its broker does not have online was created again, empty. */
    public static final class CreatedAgainIsNotEligible {
        @Advice.OnMethodExit
        static void exit(
            @Advice.Argument(0) int brokerId, @Advice.FieldValue("partition") PartitionRegistration partition,
            @Advice.FieldValue(value = "uncleanShutdownReplicas", readOnly = false) List<Integer> uncleanShutdownReplicas
        ) {
            if (!isOnline(brokerId, partition)) uncleanShutdownReplicas = List.of(brokerId);
        }
    }

    public static boolean isOnline(int brokerId, PartitionRegistration partition) {
        ClusterControlManager cluster = (ClusterControlManager) value(manager, "clusterControl");
        return cluster.registration(brokerId).hasOnlineDir(partition.directory(brokerId));
    }

    /** F11: each raise of min.insync.replicas by a configuration gives the partitions that are led another leader epoch. */
    public static final class RenewsEpochs {
        @Advice.OnMethodExit
        static void exit(
            @Advice.This ConfigurationControlManager configurations, @Advice.Argument(0) List<ApiMessageAndVersion> records,
            @Advice.Return(readOnly = false) List<ApiMessageAndVersion> clears
        ) {
            clears = renewed(configurations, records, clears);
        }
    }

    public static List<ApiMessageAndVersion> renewed(
        ConfigurationControlManager configurations, List<ApiMessageAndVersion> records, List<ApiMessageAndVersion> clears
    ) {
        List<ApiMessageAndVersion> all = new ArrayList<>();
        for (ApiMessageAndVersion record : records) {
            if (!(record.message() instanceof ConfigRecord config) || !config.name().equals(MIN_ISR)) continue;
            boolean isTopics = config.resourceType() == ConfigResource.Type.TOPIC.id();
            manager.findAllTopicIds(Long.MAX_VALUE).forEach((topic, id) -> {
                boolean isItsOwn = isTopics ? topic.equals(config.resourceName()) : config.resourceName().isEmpty();
                int before = Integer.parseInt(configurations.getTopicConfig(topic, MIN_ISR).value());
                if (isItsOwn && config.value() != null && Integer.parseInt(config.value()) > before) renew(id, all);
            });
        }
        all.addAll(clears);
        return all;
    }

    private static void renew(Uuid topicId, List<ApiMessageAndVersion> records) {
        registrations(manager, manager.getTopic(topicId)).forEach((id, registration) -> {
            if (registration.leader != NO_LEADER) {
                records.add(new ApiMessageAndVersion(new PartitionChangeRecord().
                    setTopicId(topicId).setPartitionId(id).setLeader(registration.leader), (short) 0));
            }
        });
    }

    /** F12: whether a reassignment is complete is checked again after the election. */
    public static final class CompletesAfterElection {
        @Advice.OnMethodExit
        static void exit(@Advice.This PartitionChangeBuilder builder) {
            call(builder, "completeReassignmentIfNeeded");
        }
    }

    /** F13: without a leader, the last member to go is remembered once no other replica is waited for. */
    public static final class RemembersLastMember {
        @Advice.OnMethodExit
        static void exit(
            @Advice.Argument(0) PartitionChangeRecord record, @Advice.FieldValue("partition") PartitionRegistration partition,
            @Advice.FieldValue("targetReplicas") List<Integer> targetReplicas
        ) {
            rememberLast(record, partition, targetReplicas);
        }
    }

    public static void rememberLast(PartitionChangeRecord record, PartitionRegistration partition, List<Integer> replicas) {
        int leader = record.leader() == NO_LEADER_CHANGE ? partition.leader : record.leader();
        boolean waits = isAny(record.isr(), partition.isr) || isAny(record.eligibleLeaderReplicas(), partition.elr)
            || isAny(record.lastKnownElr(), partition.lastKnownElr);
        if (leader != NO_LEADER || waits) return;
        List<Integer> last = replicas.stream().filter(replica -> Replicas.contains(partition.isr, replica)
            || Replicas.contains(partition.elr, replica)).toList();
        if (!last.isEmpty()) record.setLastKnownElr(last);
    }

    private static boolean isAny(List<Integer> written, int[] before) {
        return written == null ? before.length > 0 : !written.isEmpty();
    }

    private static Object value(Object owner, String field) {
        try {
            Field found = owner.getClass().getDeclaredField(field);
            found.setAccessible(true);
            return found.get(owner);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }

    public static void call(Object owner, String method) {
        try {
            Method found = owner.getClass().getDeclaredMethod(method);
            found.setAccessible(true);
            found.invoke(owner);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }
}
