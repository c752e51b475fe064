import java.lang.instrument.Instrumentation;
import kafka.cluster.Partition;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaModule;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * Repairs a finding of docs/findings.md in the loaded classes of Kafka.
 *
 * {@code -javaagent:repairs.jar=ADVICE CLASS METHOD;..}: each advice is woven into the methods of that name when the class is
 * loaded. One that fits nowhere ends the process: an unrepaired Kafka must never be measured as a repaired one.
 */
public final class RepairAgent {
    private static final int ENDS = 97;

    private RepairAgent() { }

    public static void premain(String repairs, Instrumentation instrumentation) {
        // Descriptions are read from class files: to load an advice is to load the classes of Kafka that it names.
        ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
        TypePool pool = TypePool.Default.of(locator);
        for (String repair : repairs.split(";")) {
            String[] words = repair.trim().split(" +");
            TypeDescription advice = pool.describe(words[0]).resolve();
            ElementMatcher<MethodDescription> methods = method -> method.getInternalName().equals(words[2]);
            if (pool.describe(words[1]).resolve().getDeclaredMethods().filter(methods).isEmpty()) {
                System.err.println("RepairAgent: fits nowhere: " + repair);
                Runtime.getRuntime().halt(ENDS);
            }
            new AgentBuilder.Default()
                .disableClassFormatChanges()
                .with(new AgentBuilder.Listener.Adapter() {
                    @Override
                    public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable failure) {
                        System.err.println("RepairAgent: " + type + ": " + failure);
                        Runtime.getRuntime().halt(ENDS);
                    }
                })
                .type(ElementMatchers.named(words[1]))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(advice, locator).on(methods)))
                .installOn(instrumentation);
        }
    }

    /** F2: with each leader epoch a leader forgets where the logs of its followers ended. */
    public static final class ForgetsLogEnds {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) boolean isNewLeader) {
            isNewLeader = true;
        }
    }

    /** F3: a leader skips metadata that it has read. */
    public static final class SkipsEqual {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.This Partition partition, @Advice.Argument(0) PartitionRegistration registration) {
            return partition.isLeader() && registration.leaderEpoch == partition.getLeaderEpoch()
                && registration.partitionEpoch == partition.getPartitionEpoch();
        }
    }
}
