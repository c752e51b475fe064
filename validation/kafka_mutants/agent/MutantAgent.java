import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.Type;

/**
 * Changes a branch or a value of classes of Kafka when they are loaded.
 *
 * As an agent, {@code -javaagent:agent.jar=FILE}: each line of FILE is {@code CLASS METHOD CHANGE ARGUMENTS}. When a class is
 * loaded, {@code FILE.applied} gets a line per change. A change that fits nowhere ends the process: an unchanged Kafka must
 * never be measured as a changed one. All changes are in effect until {@code FILE.active} has the number of a line, from 1 on:
 * then that one is alone, and 0 is none; {@code FILE.now} follows within milliseconds. So one process is many changed ones.
 *
 * As a program, {@code java -cp agent.jar:KAFKA.jar MutantAgent CLASS METHOD}: lists what can be changed, numbered.
 *
 * A change is a call that decides, and adds no branch, so the stack maps of the class stay right.
 *
 *   jump N invert       the Nth conditional jump (from 0) is taken when it was not
 *   jump N never        it is never taken
 *   jump N always       it is always taken
 *   jump N boundary     less becomes less or equal, and so on
 *   call NAME N VALUE   the result of the Nth call of NAME is VALUE; N * is every call
 *   field NAME N OTHER  the Nth read of the static field NAME reads OTHER of the same class
 *   return VALUE        what the method returns becomes VALUE
 *
 * VALUE is true, false, null, a number from 0 on, `not` (a boolean is negated), `+N` or `-N` (is added).
 */
public final class MutantAgent {
    private static final int ENDS = 97;
    private static final int ALL = -1;
    private static final int POLL_MS = 5;
    private static final String SELF = "MutantAgent";
    private static volatile int active = ALL;

    private MutantAgent() { }

    private record Change(int number, String owner, String method, String kind, List<String> args) {
        static Change parse(int number, String line) {
            List<String> words = List.of(line.trim().split(" +"));
            return new Change(number, words.get(0).replace('.', '/'), words.get(1), words.get(2), words.subList(3, words.size()));
        }
    }

    // What changed classes call.

    public static boolean jump(int left, int opcode, String change, int number) {
        return jump(left, 0, opcode, change, number);
    }

    public static boolean jump(int left, int right, int opcode, String change, int number) {
        boolean taken = test(left, right, opcode);
        return isActive(number) ? changed(taken, change, () -> test(left, right, boundary(opcode))) : taken;
    }

    public static boolean jump(Object left, int opcode, String change, int number) {
        return jump(left, null, opcode, change, number);
    }

    public static boolean jump(Object left, Object right, int opcode, String change, int number) {
        boolean taken = (left == right) == (opcode == Opcodes.IFNULL || opcode == Opcodes.IF_ACMPEQ);
        return isActive(number) ? changed(taken, change, () -> taken) : taken;
    }

    public static int value(int right, String value, int number) {
        if (!isActive(number)) return right;
        return switch (value) {
            case "not" -> 1 - right;
            case "true" -> 1;
            case "false" -> 0;
            default -> (int) value((long) right, value, number);
        };
    }

    public static long value(long right, String value, int number) {
        if (!isActive(number)) return right;
        boolean adds = value.startsWith("+") || value.startsWith("-");
        return Long.parseLong(value) + (adds ? right : 0);
    }

    public static Object value(Object right, String value, int number) {
        return isActive(number) ? null : right;
    }

    public static Object field(Object right, Object other, int number) {
        return isActive(number) ? other : right;
    }

    private static boolean isActive(int number) {
        return active == number || active == ALL;
    }

    private static boolean changed(boolean taken, String change, BooleanSupplier atBoundary) {
        return switch (change) {
            case "invert" -> !taken;
            case "never" -> false;
            case "always" -> true;
            default -> atBoundary.getAsBoolean();
        };
    }

    private static boolean test(int left, int right, int opcode) {
        return switch (opcode) {
            case Opcodes.IFEQ, Opcodes.IF_ICMPEQ -> left == right;
            case Opcodes.IFNE, Opcodes.IF_ICMPNE -> left != right;
            case Opcodes.IFLT, Opcodes.IF_ICMPLT -> left < right;
            case Opcodes.IFGE, Opcodes.IF_ICMPGE -> left >= right;
            case Opcodes.IFGT, Opcodes.IF_ICMPGT -> left > right;
            case Opcodes.IFLE, Opcodes.IF_ICMPLE -> left <= right;
            default -> throw new IllegalStateException("no jump: opcode " + opcode);
        };
    }

    private static int boundary(int opcode) {
        return switch (opcode) {
            case Opcodes.IFLT, Opcodes.IF_ICMPLT -> Opcodes.IFLE;
            case Opcodes.IFLE, Opcodes.IF_ICMPLE -> Opcodes.IFLT;
            case Opcodes.IFGT, Opcodes.IF_ICMPGT -> Opcodes.IFGE;
            case Opcodes.IFGE, Opcodes.IF_ICMPGE -> Opcodes.IFGT;
            default -> throw new IllegalStateException("no order: opcode " + opcode);
        };
    }

    private static void follow(Path file, Path now) {
        String last = "";
        while (true) {
            try {
                String text = Files.exists(file) ? Files.readString(file).trim() : "";
                if (!text.isEmpty() && !text.equals(last)) {
                    active = Integer.parseInt(text);
                    Files.writeString(now, text);
                    last = text;
                }
                Thread.sleep(POLL_MS);
            } catch (IOException | NumberFormatException halfWritten) {
                last = "";
            } catch (InterruptedException ends) {
                return;
            }
        }
    }

    public static void premain(String file, Instrumentation instrumentation) throws IOException {
        List<Change> changes = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            if (!line.isBlank()) changes.add(Change.parse(changes.size() + 1, line));
        }
        Path wanted = Path.of(file + ".active");
        if (Files.exists(wanted)) active = Integer.parseInt(Files.readString(wanted).trim());
        Thread follower = new Thread(() -> follow(wanted, Path.of(file + ".now")));
        follower.setDaemon(true);
        follower.start();
        Path applied = Path.of(file + ".applied");
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] bytes) {
                List<Change> here = changes.stream().filter(change -> change.owner().equals(name)).toList();
                if (here.isEmpty()) return null;
                try {
                    byte[] changed = bytes;
                    for (Change change : here) {
                        Changer changer = new Changer(new ClassWriter(0), change);
                        new ClassReader(changed).accept(changer, 0);
                        if (changer.times == 0) throw new IllegalStateException("fits nowhere: " + change);
                        changed = changer.bytes();
                        Files.writeString(applied, change.number() + " " + changer.times + "\n",
                                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                    }
                    return changed;
                } catch (Throwable failure) {
                    System.err.println("MutantAgent: " + failure);
                    Runtime.getRuntime().halt(ENDS);
                    return null;
                }
            }
        });
    }

    public static void main(String[] args) throws IOException {
        String resource = args[0].replace('.', '/') + ".class";
        try (InputStream in = MutantAgent.class.getClassLoader().getResourceAsStream(resource)) {
            if (in == null) throw new IOException("no " + resource + " on the class path");
            new ClassReader(in).accept(new ClassVisitor(Opcodes.ASM9) {
                @Override
                public MethodVisitor visitMethod(int access, String name, String desc, String signature, String[] thrown) {
                    if (!name.equals(args[1])) return null;
                    System.out.println(name + desc);
                    return new Lister();
                }
            }, 0);
        }
    }

    /** Applies one change to the methods of its name. */
    private static final class Changer extends ClassVisitor {
        private static final Set<String> HOW = Set.of("invert", "never", "always", "boundary");
        private final ClassWriter writer;
        private final Change change;
        private int times;

        Changer(ClassWriter writer, Change change) {
            super(Opcodes.ASM9, writer);
            this.writer = writer;
            this.change = change;
        }

        byte[] bytes() {
            return writer.toByteArray();
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String desc, String signature, String[] thrown) {
            MethodVisitor next = super.visitMethod(access, name, desc, signature, thrown);
            if (!name.equals(change.method())) return next;
            return new MethodVisitor(Opcodes.ASM9, next) {
                private int jumps;
                private final Map<String, Integer> seen = new HashMap<>();

                private boolean isNext(String kind, String name) {
                    int at = seen.merge(name, 1, Integer::sum) - 1;
                    return change.kind().equals(kind) && change.args().get(0).equals(name)
                            && (change.args().get(1).equals("*") || change.args().get(1).equals("" + at));
                }

                private void decide(String decision, String takes, Object... pushed) {
                    for (Object value : pushed) super.visitLdcInsn(value);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, SELF, decision, takes, false);
                    times++;
                }

                @Override
                public void visitJumpInsn(int opcode, Label label) {
                    int at = opcode == Opcodes.GOTO ? -1 : jumps++;
                    if (!change.kind().equals("jump") || !change.args().get(0).equals("" + at)) {
                        super.visitJumpInsn(opcode, label);
                        return;
                    }
                    String how = change.args().get(1);
                    if (!HOW.contains(how)) throw new IllegalStateException("no such change: " + change);
                    if (how.equals("boundary")) boundary(opcode);
                    boolean isOfObjects = opcode >= Opcodes.IF_ACMPEQ;
                    boolean single = opcode <= Opcodes.IFLE || opcode >= Opcodes.IFNULL;
                    String operand = isOfObjects ? "Ljava/lang/Object;" : "I";
                    String takes = "(" + operand.repeat(single ? 1 : 2) + "ILjava/lang/String;I)Z";
                    decide("jump", takes, opcode, how, change.number());
                    super.visitJumpInsn(Opcodes.IFNE, label);
                }

                @Override
                public void visitMethodInsn(int opcode, String owner, String called, String desc, boolean isInterface) {
                    super.visitMethodInsn(opcode, owner, called, desc, isInterface);
                    if (isNext("call", called)) replace(Type.getReturnType(desc), change.args().get(2));
                }

                @Override
                public void visitFieldInsn(int opcode, String owner, String field, String desc) {
                    super.visitFieldInsn(opcode, owner, field, desc);
                    if (opcode == Opcodes.GETSTATIC && isNext("field", field)) {
                        super.visitFieldInsn(opcode, owner, change.args().get(2), desc);
                        decide("field", "(Ljava/lang/Object;Ljava/lang/Object;I)Ljava/lang/Object;", change.number());
                        super.visitTypeInsn(Opcodes.CHECKCAST, Type.getType(desc).getInternalName());
                    }
                }

                @Override
                public void visitInsn(int opcode) {
                    boolean returns = opcode >= Opcodes.IRETURN && opcode <= Opcodes.ARETURN;
                    if (returns && change.kind().equals("return")) replace(Type.getReturnType(desc), change.args().get(0));
                    super.visitInsn(opcode);
                }

                private void replace(Type type, String value) {
                    String same = switch (type.getSort()) {
                        case Type.LONG -> "J";
                        case Type.BOOLEAN, Type.INT, Type.SHORT, Type.BYTE -> "I";
                        case Type.OBJECT, Type.ARRAY -> "Ljava/lang/Object;";
                        default -> throw new IllegalStateException("returns no such value: " + change);
                    };
                    decide("value", "(" + same + "Ljava/lang/String;I)" + same, value, change.number());
                    if (same.length() > 1) super.visitTypeInsn(Opcodes.CHECKCAST, type.getInternalName());
                }

                // Five slots are enough for every change.
                @Override
                public void visitMaxs(int stack, int locals) {
                    super.visitMaxs(stack + 5, locals);
                }
            };
        }
    }

    /** Prints what can be changed in a method. */
    private static final class Lister extends MethodVisitor {
        private static final String[] JUMPS = {"== 0", "!= 0", "< 0", ">= 0", "> 0", "<= 0", "==", "!=", "<", ">=", ">", "<=",
            "same", "not same"};
        private final Map<String, Integer> seen = new HashMap<>();
        private int jumps;
        private int line;

        Lister() {
            super(Opcodes.ASM9);
        }

        private void say(String what) {
            System.out.printf("%6d  %s%n", line, what);
        }

        private int count(String name) {
            return seen.merge(name, 1, Integer::sum) - 1;
        }

        @Override
        public void visitLineNumber(int number, Label start) {
            line = number;
        }

        @Override
        public void visitJumpInsn(int opcode, Label label) {
            if (opcode == Opcodes.GOTO) return;
            String test = opcode == Opcodes.IFNULL ? "null" : opcode == Opcodes.IFNONNULL ? "not null" : JUMPS[opcode - Opcodes.IFEQ];
            say("jump " + jumps++ + "    if " + test);
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String desc, boolean isInterface) {
            say("  call " + name + " " + count(name) + "    " + owner.substring(owner.lastIndexOf('/') + 1) + desc);
        }

        @Override
        public void visitFieldInsn(int opcode, String owner, String name, String desc) {
            if (opcode == Opcodes.GETSTATIC) say("  field " + name + " " + count(name));
        }

        @Override
        public void visitInvokeDynamicInsn(String name, String desc, net.bytebuddy.jar.asm.Handle handle, Object... args) {
            for (Object arg : args) {
                if (arg instanceof net.bytebuddy.jar.asm.Handle to) say("  lambda " + to.getName());
            }
        }
    }
}
