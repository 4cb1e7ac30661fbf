import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * A node of OpenSearch as its start script makes one, with the modules that ship with it taken from the class path.
 * Arguments are settings: name=value. It ends when its standard input does, so that it never outlives its test.
 */
public final class EngineNode extends Node {
  private EngineNode(Settings settings) {
    super(new Environment(settings, (Path) null), List.of(Netty4Plugin.class, ReindexPlugin.class), true);
  }

  public static void main(String[] arguments) throws Exception {
    Settings.Builder settings = Settings.builder();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    EngineNode node = new EngineNode(settings.build());
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        node.close();
      } catch (Exception failure) {
        failure.printStackTrace();
      }
    }));
    node.start();
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
